use popcell_sdk::{pod, prelude::*};

struct Widget;

#[interpreter(api_version = "example.io/v1", kind = "Widget")]
impl Interpreter for Widget {
    fn replicas(widget: &Object) -> Result<Replicas> {
        let replicas = widget.int("/spec/replicas")?.unwrap_or(1);
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
}
