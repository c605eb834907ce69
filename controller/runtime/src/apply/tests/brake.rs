//! Deletes that the brake holds.

use super::*;

#[tokio::test]
async fn c24_the_brake_holds_a_mass_deletion_and_lets_the_rest_pass() {
    let tried = Tried::new(&[(201, stored("b", "u")), (200, json!({}))]).await;
    let plan = plan(vec![delete("a", Vec::new(), Brake::Applies), create("b")]);
    let many = |_: &Plane, _: Kind| Difference {
        ours: 30,
        doomed: 25,
        partial: false,
    };
    assert_eq!(tried.applier.carry_out(&plan, &many).await, Ok(Done::Held));
    assert_eq!(tried.server.asked(), [format!("POST {ALL}")]);
    assert!(tried.applier.release_brakes());
    let again = Plan {
        actions: plan.actions[..1].to_vec(),
        ..Plan::default()
    };
    assert_eq!(tried.applier.carry_out(&again, &many).await, Ok(Done::Written));
    assert_eq!(tried.server.asked(), [format!("DELETE {ALL}/a")]);
}

#[tokio::test]
async fn c24_a_part_of_the_difference_does_not_open_the_brake() {
    let tried = Tried::new(&[(200, json!({}))]).await;
    let plan = plan(vec![delete("a", Vec::new(), Brake::Applies)]);
    let part = |_: &Plane, _: Kind| Difference {
        ours: 30,
        doomed: 1,
        partial: true,
    };
    assert_eq!(tried.applier.carry_out(&plan, &part).await, Ok(Done::Written));
    let whole = |_: &Plane, _: Kind| Difference {
        ours: 30,
        doomed: 25,
        partial: false,
    };
    assert_eq!(tried.applier.carry_out(&plan, &whole).await, Ok(Done::Held));
}

#[tokio::test]
async fn c24_a_brake_that_holds_is_not_opened_by_a_part_of_the_difference() {
    let tried = Tried::new(&[]).await;
    let plan = plan(vec![delete("a", Vec::new(), Brake::Applies)]);
    for (doomed, partial) in [(25, false), (1, true)] {
        let difference = move |_: &Plane, _: Kind| Difference {
            ours: 30,
            doomed,
            partial,
        };
        assert_eq!(tried.applier.carry_out(&plan, &difference).await, Ok(Done::Held));
    }
    assert!(tried.server.asked().is_empty());
}

/// What a difference of so many of 30 does to two deletes, and what is told of the brake.
async fn ask(tried: &Tried, doomed: usize) -> (Result<Done, ApplyError>, Vec<String>) {
    for _ in 0..2 {
        let deleted = (200, json!({}));
        tried.server.answers.lock().unwrap().push_back(deleted);
    }
    let doom = |name| delete(name, Vec::new(), Brake::Applies);
    let difference = move |_: &Plane, _: Kind| Difference {
        ours: 30,
        doomed,
        partial: false,
    };
    let done = tried
        .applier
        .carry_out(&plan(vec![doom("a"), doom("b")]), &difference)
        .await;
    (done, braked(tried))
}

fn braked(tried: &Tried) -> Vec<String> {
    let mut told = std::mem::take(&mut *tried.meter.0.lock().unwrap());
    told.retain(|one| one.contains(" in hub: "));
    told
}

#[tokio::test]
async fn d7_4_it_is_told_once_that_the_brake_holds_and_once_that_it_opens() {
    let tried = Tried::new(&[]).await;
    let held = "WorkloadDeployment in hub: Held(Difference { ours: 30, doomed: 25, partial: false })";
    assert_eq!(ask(&tried, 25).await, (Ok(Done::Held), vec![held.to_owned()]));
    assert_eq!(ask(&tried, 25).await, (Ok(Done::Held), Vec::new()));
    let recovered = "WorkloadDeployment in hub: Recovered".to_owned();
    assert_eq!(ask(&tried, 2).await, (Ok(Done::Written), vec![recovered]));
    assert_eq!(ask(&tried, 2).await, (Ok(Done::Written), Vec::new()));

    tried.applier.brakes().relisted(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT);
    ask(&tried, 25).await.0.unwrap();
    assert!(tried.applier.release_brakes());
    assert_eq!(braked(&tried), ["WorkloadDeployment in hub: Released"]);
    assert!(!tried.applier.release_brakes());
    assert_eq!(ask(&tried, 25).await, (Ok(Done::Written), Vec::new()));
}
