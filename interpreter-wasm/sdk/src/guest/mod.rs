//! The component's exports: a module as the interface text wants it. Only in WebAssembly.
//!
//! Nothing is decided here: every function finds the kind, reads the objects and calls what native tests call. What was
//! read is never freed: the instance lives for this one call, and taking an object apart costs as much as reading it.

mod convert;

/// What wit-bindgen makes of the interface text.
#[allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    clippy::indexing_slicing,
    clippy::unwrap_used
)]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "interpreter",
        pub_export_macro: true,
        export_macro_name: "export_operations",
        default_bindings_module: "popcell_sdk::guest::bindings",
    });
}

use self::bindings::exports::popcell::interpreter::operations as wit;
use crate::module::{Functions, ModuleDef, OBSERVED_BASE, status_base};
use crate::{Error, Json, Object, Result, StatusItem};

/// Where the exports find the module; `export_interpreters!` implements it.
pub trait Provider {
    /// The module.
    fn module() -> ModuleDef;
}

/// Exports the module that the function returns.
#[doc(hidden)]
#[macro_export]
macro_rules! export_component {
    ($module:path) => {
        const _: () = {
            struct Exported;
            impl $crate::guest::Provider for Exported {
                fn module() -> $crate::ModuleDef {
                    $module()
                }
            }
    $crate::guest::bindings::export_operations!(Exported with_types_in $crate::guest::bindings);
        };
    };
}

impl<P: Provider> wit::Guest for P {
    fn describe() -> wit::Description {
        P::module().into()
    }

    fn interpret_replica(kind: wit::Gvk, object: Vec<u8>) -> Result<wit::Replicas, wit::Error> {
        Ok((functions::<P>(&kind)?.replicas)(read(object)?)?.into())
    }

    fn interpret_component(kind: wit::Gvk, object: Vec<u8>) -> Result<Vec<wit::Component>, wit::Error> {
        let components = (functions::<P>(&kind)?.components)(read(object)?)?;
        Ok(components.into_iter().map(Into::into).collect())
    }

    fn revise_replica(kind: wit::Gvk, object: Vec<u8>, replicas: i32) -> Result<wit::Change, wit::Error> {
        Ok(functions::<P>(&kind)?.revised(read(object)?, replicas)?.into())
    }

    fn retain(kind: wit::Gvk, desired: Vec<u8>, observed: Vec<u8>) -> Result<wit::Change, wit::Error> {
        let observed = read_at(observed, OBSERVED_BASE)?;
        Ok(functions::<P>(&kind)?.retained(read(desired)?, observed)?.into())
    }

    fn aggregate_status(
        kind: wit::Gvk,
        object: Vec<u8>,
        items: Vec<wit::StatusItem>,
    ) -> Result<wit::Aggregation, wit::Error> {
        let items: Vec<_> = items.into_iter().enumerate().map(status_item).collect::<Result<_>>()?;
        Ok(functions::<P>(&kind)?.aggregated(read(object)?, items.leak())?.into())
    }

    fn interpret_status(kind: wit::Gvk, object: Vec<u8>) -> Result<Vec<u8>, wit::Error> {
        let status = (functions::<P>(&kind)?.status)(read(object)?)?;
        Ok(status.to_text().into_bytes())
    }

    fn interpret_health(kind: wit::Gvk, object: Vec<u8>) -> Result<bool, wit::Error> {
        Ok((functions::<P>(&kind)?.health)(read(object)?)?)
    }

    fn interpret_dependency(kind: wit::Gvk, object: Vec<u8>) -> Result<Vec<wit::Dependency>, wit::Error> {
        let dependencies = (functions::<P>(&kind)?.dependencies)(read(object)?)?;
        Ok(dependencies.into_iter().map(Into::into).collect())
    }
}

fn functions<P: Provider>(kind: &wit::Gvk) -> Result<Functions> {
    let target = P::module()
        .target(&kind.group, &kind.version, &kind.kind)
        .ok_or(Error::Unsupported)?;
    Ok(target.functions)
}

fn read(object: Vec<u8>) -> Result<&'static Object> {
    read_at(object, "")
}

fn read_at(object: Vec<u8>, base: &str) -> Result<&'static Object> {
    Ok(Box::leak(Box::new(Json::parse_at(object, base)?.try_into()?)))
}

fn status_item((position, item): (usize, wit::StatusItem)) -> Result<StatusItem> {
    let status = item.status.map(|status| Json::parse_at(status, &status_base(position)));
    Ok(StatusItem {
        cluster_name: item.cluster_name,
        status: status.transpose()?,
        applied: item.applied,
        applied_message: item.applied_message,
        health: item.health.map(Into::into),
    })
}
