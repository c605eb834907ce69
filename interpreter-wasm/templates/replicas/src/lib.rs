use popcell_sdk::{pod, prelude::*};

struct Widget;

#[interpreter(api_version = "example.io/v1", kind = "Widget")]
impl Interpreter for Widget {
    fn replicas(widget: &Object) -> Result<Replicas> {
        let replicas = widget.int("/spec/replicas")?.unwrap_or(1);
        // With requirements at 0 replicas Karmada's scheduler would take the object out of its cluster.
        let requirements = if replicas > 0 {
            pod::requirements(widget, "/spec/template")?
        } else {
            None
        };
        Ok(Replicas { replicas, requirements })
    }

    fn revise(widget: &mut Object, replicas: i32) -> Result<()> {
        widget.set("/spec/replicas", replicas)
    }
}
