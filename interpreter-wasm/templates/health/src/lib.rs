use popcell_sdk::prelude::*;

struct Widget;

#[interpreter(api_version = "example.io/v1", kind = "Widget")]
impl Interpreter for Widget {
    fn health(widget: &Object) -> Result<bool> {
        let ready = widget.int("/status/readyReplicas")?.unwrap_or(0);
        Ok(ready >= widget.int("/spec/replicas")?.unwrap_or(1))
    }
}
