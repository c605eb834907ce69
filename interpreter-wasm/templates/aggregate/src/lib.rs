use popcell_sdk::{aggregation, generation, prelude::*};

struct Widget;

#[interpreter(api_version = "example.io/v1", kind = "Widget")]
impl Interpreter for Widget {
    /// What a member cluster sends upward.
    fn status(widget: &Object) -> Result<Json> {
        let ready = widget.int("/status/readyReplicas")?;
        let observed = widget.int("/status/observedGeneration")?;
        let fields = [("readyReplicas", ready), ("observedGeneration", observed)];
        let mut status = Json::object(fields.into_iter().filter_map(|(key, value)| Some((key, value?))));
        generation::note(&mut status, widget)?;
        Ok(status)
    }

    /// What the statuses of all clusters are together.
    fn aggregate(widget: &mut Object, items: &[StatusItem]) -> Result<()> {
        let observed = generation::translate(widget, &items.iter().collect::<Vec<_>>())?;
        if let Some(observed) = observed {
            widget.set("/status/observedGeneration", observed)?;
        }
        widget.set("/status/readyReplicas", aggregation::total(items, "/readyReplicas")?)
    }
}
