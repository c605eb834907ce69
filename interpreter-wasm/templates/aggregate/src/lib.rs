use popcell_sdk::{aggregation, generation, prelude::*};

struct Widget;

#[interpreter(api_version = "example.io/v1", kind = "Widget")]
impl Interpreter for Widget {
    /// What a member cluster sends upward.
    fn status(widget: &Object) -> Result<Json> {
        let mut fields = Vec::new();
        for key in ["readyReplicas", "observedGeneration"] {
            if let Some(value) = widget.int(&format!("/status/{key}"))? {
                fields.push((key, value));
            }
        }
        let mut status = Json::object(fields);
        generation::note(&mut status, widget)?;
        Ok(status)
    }

    /// What the statuses of all clusters are together.
    fn aggregate(widget: &mut Object, items: &[StatusItem]) -> Result<()> {
        let observed = generation::translate(widget, &items.iter().collect::<Vec<_>>())?;
        if let Some(observed) = observed {
            widget.set("/status/observedGeneration", observed)?;
        }
        let ready = aggregation::total(items, "/readyReplicas")?;
        widget.set("/status/readyReplicas", ready)
    }
}
