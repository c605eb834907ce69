//! What is remembered of answers.

use popcell_api::kind;
use serde_json::json;

use super::*;

#[tokio::test]
async fn a_spec_that_is_stored_otherwise_is_remembered() {
    let mut pruned = stored("a", "u");
    pruned["spec"] = json!({});
    let tried = Tried::new(&[(201, pruned)]).await;
    let create = create("a");
    tried.execute(&plan(vec![create.clone()])).await.unwrap();
    let spec_echoes = tried.applier.spec_echoes();
    assert!(spec_echoes.explains(create.target(), &json!({ "a": 1 }), Some(&json!({}))));
}

#[tokio::test]
async fn a_projection_is_remembered_while_its_kind_is_watched() {
    let tried = Tried::new(&[]).await;
    let plane = Plane::Project("p".to_owned());
    tried.applier.planes.engage(&plane, None).await.unwrap();
    let target = Target::namespaced(&plane, kind::INSTANCE, "ns-1", "a");
    let is_remembered = || tried.applier.remembered(&target, "7").is_some();
    for (gone, remembered) in [
        ((&plane, kind::INSTANCE), false),
        ((&plane, kind::WORKLOAD_DEPLOYMENT), true),
        ((&Plane::Hub, kind::INSTANCE), true),
    ] {
        tried.server.answers.lock().unwrap().push_back((201, stored("a", "u")));
        let create = Action::create(&plane, kind::INSTANCE, object("a", ""));
        tried.execute(&plan(vec![create])).await.unwrap();
        assert!(is_remembered());
        let memory = tried.applier.planes.memory(gone.0).unwrap();
        memory.forget_kind(gone.1);
        assert_eq!(is_remembered(), remembered, "{gone:?}");
    }
    tried.applier.planes.memory(&plane).unwrap().forget(&target);
    assert!(!is_remembered());
}
