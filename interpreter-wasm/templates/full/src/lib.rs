use popcell_sdk::{aggregation, pod, prelude::*};

struct Widget;

#[interpreter(api_version = "example.io/v1", kind = "Widget")]
impl Interpreter for Widget {
    fn replicas(widget: &Object) -> Result<Replicas> {
        let replicas = desired(widget)?;
        Ok(Replicas {
            replicas,
            // With requirements at 0 replicas Karmada's scheduler takes the object out of its cluster.
            requirements: match replicas {
                1.. => pod::requirements(widget, "/spec/template")?,
                _ => None,
            },
        })
    }

    fn revise(widget: &mut Object, replicas: i32) -> Result<()> {
        widget.set("/spec/replicas", replicas)
    }

    /// The member cluster decides whether it is paused.
    fn retain(desired: &mut Object, observed: &Object) -> Result<()> {
        match observed.bool("/spec/paused")? {
            Some(paused) => desired.set("/spec/paused", paused),
            None => Ok(()),
        }
    }

    fn status(widget: &Object) -> Result<Json> {
        let ready = widget.int("/status/readyReplicas")?;
        Ok(Json::object(ready.map(|ready| ("readyReplicas", ready))))
    }

    fn aggregate(widget: &mut Object, items: &[StatusItem]) -> Result<()> {
        let ready = aggregation::total(items, "/readyReplicas")?;
        widget.set("/status/readyReplicas", ready)
    }

    fn health(widget: &Object) -> Result<bool> {
        if widget.bool("/spec/paused")?.unwrap_or(false) {
            // Moving a paused object to another cluster cannot help it.
            return Err(Error::undecided("the widget is paused"));
        }
        Ok(widget.int("/status/readyReplicas")?.unwrap_or(0) >= desired(widget)?)
    }

    fn dependencies(widget: &Object) -> Result<Vec<Dependency>> {
        pod::dependencies(widget, "/spec/template")
    }
}

fn desired(widget: &Object) -> Result<i64> {
    Ok(widget.int("/spec/replicas")?.unwrap_or(1))
}
