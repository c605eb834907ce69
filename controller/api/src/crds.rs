//! The CRDs as they are shipped.
//!
//! API servers drop what a schema does not describe. Where people write, that is good: `kubectl apply` names the field
//! that is not there. What controllers carry from plane to plane must arrive whole, also where one plane's CRD is older
//! than another's: the specs and statuses of WorkloadDeployments and Instances therefore keep fields that their schemas
//! do not describe, at every level.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;

use crate::instance::unobserved_status;
use crate::{Instance, InstanceType, Workload, WorkloadDeployment, labels};

/// Every CRD of the compute API that projects, hub and cells serve, ordered by name.
#[must_use]
pub fn crds() -> Vec<CustomResourceDefinition> {
    let mut instances = Instance::crd();
    each_root(&mut instances, |root| {
        if let Some(status) = property(root, "status") {
            status.default = Some(JSON(unobserved_status()));
        }
    });
    let mut deployments = WorkloadDeployment::crd();
    for crd in [&mut instances, &mut deployments] {
        each_root(crd, |root| {
            for part in ["spec", "status"] {
                if let Some(schema) = property(root, part) {
                    keep_unknown(schema);
                }
            }
        });
    }
    let mut all = vec![instances, deployments, Workload::crd()];
    finish(&mut all);
    all
}

/// The CRDs that only the platform's own server serves: its catalogue.
#[must_use]
pub fn catalogue_crds() -> Vec<CustomResourceDefinition> {
    let mut all = vec![InstanceType::crd()];
    finish(&mut all);
    all
}

/// What all have in common.
fn finish(all: &mut [CustomResourceDefinition]) {
    for crd in all.iter_mut() {
        let part_of = (labels::PART_OF.to_owned(), labels::PART_OF_POPCELL.to_owned());
        crd.metadata.labels.get_or_insert_default().extend([part_of]);
        each_root(crd, refuse_null);
    }
    all.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
}

fn each_root(crd: &mut CustomResourceDefinition, change: impl FnMut(&mut JSONSchemaProps)) {
    crd.spec
        .versions
        .iter_mut()
        .filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut())
        .for_each(change);
}

fn property<'a>(schema: &'a mut JSONSchemaProps, name: &str) -> Option<&'a mut JSONSchemaProps> {
    schema.properties.as_mut()?.get_mut(name)
}

/// Takes `nullable` out of a schema. The derive gives it to every optional field, but absent and null are two
/// spellings of one thing; without it the API server drops a null, so that no reader meets one.
fn refuse_null(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    each_part(schema, refuse_null);
}

/// Keeps what the schema does not describe in every object below, but for those that never change: rules cannot compare
/// what they do not know.
fn keep_unknown(schema: &mut JSONSchemaProps) {
    if schema.properties.is_some() && schema.x_kubernetes_validations.is_none() {
        schema.x_kubernetes_preserve_unknown_fields = Some(true);
    }
    each_part(schema, keep_unknown);
}

fn each_part(schema: &mut JSONSchemaProps, change: fn(&mut JSONSchemaProps)) {
    for property in schema
        .properties
        .iter_mut()
        .flat_map(|properties| properties.values_mut())
    {
        change(property);
    }
    match schema.items.as_mut() {
        Some(JSONSchemaPropsOrArray::Schema(item)) => change(item),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(change),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = schema.additional_properties.as_mut() {
        change(values);
    }
}
