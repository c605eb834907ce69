//! Labs beside each other.

use anyhow::{Result, ensure};
use popcell_test_support::{Lab, LabSpec, kind, objects};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_labs_run_side_by_side() -> Result<()> {
    let spec = LabSpec::planes(&["project"]);
    let (first, second) = tokio::try_join!(Lab::start(&spec), Lab::start(&spec))?;
    assert_ne!(first.address(), second.address());
    assert_ne!(first.dir(), second.dir());
    let planes = [first.plane("project").await?, second.plane("project").await?];
    for (plane, name) in planes.iter().zip(["one", "two"]) {
        plane.apply(&objects::namespace(name)).await?;
    }
    for (plane, there, elsewhere) in [(&planes[0], "one", "two"), (&planes[1], "two", "one")] {
        plane.expect(kind::NAMESPACE, None, there).await?;
        let unexpected = plane.get(kind::NAMESPACE, None, elsewhere).await?;
        ensure!(unexpected.is_none(), "{elsewhere} is in the lab of {there} too");
    }
    for lab in [&first, &second] {
        lab.expect_alive().await?;
    }
    // The end of one is not the end of the other.
    let dir = first.dir().to_owned();
    first.end().await?;
    assert!(!dir.exists(), "{} is left", dir.display());
    planes[1].expect(kind::NAMESPACE, None, "two").await?;
    second.expect_alive().await?;
    second.end().await
}
