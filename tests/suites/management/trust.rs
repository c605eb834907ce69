//! The program runs in a cluster that is not the hub, and its token is one of that cluster: the hub trusts its issuer.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use kube::Client;
use popcell_suites::environment::{DFW, SOON};
use popcell_suites::tenant::Tenant;
use popcell_test_support::kind::WORKLOAD_DEPLOYMENT;
use popcell_test_support::{
    Controller, ControllerSpec, FaultProxy, Lab, Plane, eventually, kubeconfig, manifests, users,
};
use rcgen::KeyPair;
use serde_json::{Value, json};

use crate::environment::{Environment, P1, P3, SOLO};

/// Where the program's Pods would run. No other test runs beside this one, which changes the keys of its tokens.
const ISSUER: &str = P3;
const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";
/// Credentials of the members.
const CREDENTIALS: &str = "/api/v1/namespaces/karmada-cluster/secrets";

/// Only the program's own token for the hub counts there, and its work goes on while token and keys are replaced: after a key
/// that was published before without one refusal, after another as soon as the hub reads the keys again.
pub(crate) async fn of_another_issuer(environment: &Environment, namespace: &str) -> Result<()> {
    let files = tempfile::tempdir().context("failed to make a directory")?;
    let [first, second, third] = [key()?, key()?, key()?];
    let published = [first.public_key_pem(), second.public_key_pem()];
    let lab = &environment.lab;
    lab.set_token_keys(
        ISSUER,
        &first.serialize_pem(),
        &published.each_ref().map(String::as_str),
    )
    .await?;
    // What runs there has the account and the token that are shipped.
    users::at_home(lab, ISSUER, manifests::MANAGEMENT_PLANE, files.path()).await?;
    let issuer = lab.plane(ISSUER).await?;
    let asked = shipped_token()?;
    let token = async || issuer.requested_token(users::NAMESPACE, users::ACCOUNT, &asked).await;

    let old = token().await?;
    ensure!(answer(lab, &old, CLUSTERS).await? == 401, "it is trusted already");
    environment.trust.put_in(lab, ISSUER).await?;
    accepted(lab, &old).await?;
    ensure!(
        answer(lab, &old, CREDENTIALS).await? == 403,
        "it has more rights than hub-rbac"
    );
    for (whose, other) in others(lab, &issuer, &asked).await? {
        let answer = answer(lab, &other, CLUSTERS).await?;
        ensure!(answer == 401, "a token {whose} is answered {answer}");
    }

    let way = Way::new(lab, files.path()).await?;
    way.put(&old)?;
    let tenant = Tenant::new(lab, P1, namespace).await?;
    let cell = lab.plane(DFW).await?;
    environment
        .without_controller(async || {
            let milo = environment.to_milo.kubeconfig(files.path(), "milo")?;
            let spec = ControllerSpec::management(environment.home(), &way.kubeconfig).milo(&milo);
            let mut controller = Controller::start(spec).await?;
            let pid = controller.pid();
            let outcome = async {
                round_trip(&tenant, &cell, "first").await?;

                lab.set_token_keys(ISSUER, &second.serialize_pem(), &[&second.public_key_pem()])
                    .await?;
                let new = token().await?;
                way.put(&new)?;
                round_trip(&tenant, &cell, "second").await?;
                way.proxy.cut();
                round_trip(&tenant, &cell, "third").await?;
                ensure!(way.refused() == 0, "{} requests were refused", way.refused());
                // Nor does the hub know that the issuer has dropped the key.
                ensure!(answer(lab, &old, CLUSTERS).await? == 200, "the keys were read again");

                lab.set_token_keys(ISSUER, &third.serialize_pem(), &[&third.public_key_pem()])
                    .await?;
                let newest = token().await?;
                ensure!(answer(lab, &newest, CLUSTERS).await? == 401, "the keys were read again");
                way.put(&newest)?;
                tenant.workload("fourth", &[("us", &["DFW"], 1)]).await?;
                eventually("the new key is refused", SOON, async || {
                    ensure!(way.refused() > 0, "it is not");
                    Ok(())
                })
                .await?;
                environment.trust.read_keys_again()?;
                accepted(lab, &newest).await?;
                for gone in [&old, &new] {
                    ensure!(answer(lab, gone, CLUSTERS).await? == 401, "a key that is gone counts");
                }
                is_shown(&tenant, &cell, "fourth").await?;
                way.proxy.cut();
                round_trip(&tenant, &cell, "fifth").await
            };
            outcome.await.with_context(|| controller.last_words())?;
            ensure!(controller.pid() == pid, "it was restarted");
            controller.end()
        })
        .await?;
    for name in ["first", "second", "third", "fourth", "fifth"] {
        tenant.clean(name).await?;
    }
    Ok(())
}

/// Between the controller and the hub, which sees the caller's own token.
struct Way {
    proxy: FaultProxy,
    kubeconfig: PathBuf,
    token: PathBuf,
}

impl Way {
    async fn new(lab: &Lab, dir: &Path) -> Result<Self> {
        let document = kubeconfig::document(lab.url("hub")?, Some(lab.ca_file()), &json!({}));
        let proxy = FaultProxy::start(&kubeconfig::write(dir, "hub-of-anybody", &document)?).await?;
        let token = dir.join("token");
        let kubeconfig = proxy.kubeconfig_of(dir, "hub-by-token", &json!({ "tokenFile": token }))?;
        Ok(Self {
            proxy,
            kubeconfig,
            token,
        })
    }

    /// As a kubelet: who reads it finds one or the other.
    fn put(&self, token: &str) -> Result<()> {
        let new = self.token.with_extension("new");
        std::fs::write(&new, token).with_context(|| format!("failed to write {}", new.display()))?;
        std::fs::rename(&new, &self.token).with_context(|| format!("failed to write {}", self.token.display()))
    }

    /// Requests that the hub answered with 401.
    fn refused(&self) -> u64 {
        self.proxy.answered(401, |_| true)
    }
}

/// Tokens that are nobody's on the hub, and what each is.
async fn others(lab: &Lab, issuer: &Plane, asked: &Value) -> Result<Vec<(&'static str, String)>> {
    const OTHER: &str = "other";
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": OTHER, "namespace": users::NAMESPACE },
    });
    issuer.apply(&account).await?;
    let elsewhere = json!({ "audiences": ["https://elsewhere"] });
    let namesake = lab.plane(SOLO).await?;
    let of = |plane: &Plane, account: &'static str, asked: &Value| {
        let (plane, asked) = (plane.clone(), asked.clone());
        async move { plane.requested_token(users::NAMESPACE, account, &asked).await }
    };
    Ok(vec![
        ("for another audience", of(issuer, users::ACCOUNT, &elsewhere).await?),
        ("for its own server", of(issuer, users::ACCOUNT, &json!({})).await?),
        ("of another account", of(issuer, OTHER, asked).await?),
        ("of a third cluster", of(&namesake, users::ACCOUNT, asked).await?),
    ])
}

/// What the kubelet asks for, for the volume of the Deployment that is shipped: spec of a `TokenRequest`.
fn shipped_token() -> Result<Value> {
    let shipped = manifests::build(manifests::MANAGEMENT_PLANE.as_ref())?;
    let deployment = shipped.iter().find(|object| object["kind"] == "Deployment");
    let pod = &deployment.context("no Deployment")?["spec"]["template"]["spec"];
    ensure!(pod["serviceAccountName"] == users::ACCOUNT, "{pod}");
    let mut volumes = pod["volumes"].as_array().into_iter().flatten();
    let token = volumes.find_map(|volume| volume.pointer("/projected/sources/0/serviceAccountToken"));
    let token = token.context("no projected token")?;
    Ok(json!({ "audiences": [token["audience"]], "expirationSeconds": token["expirationSeconds"] }))
}

fn key() -> Result<KeyPair> {
    KeyPair::generate().context("failed to make a key")
}

/// A Workload reaches its cell, and what the cell says of it comes back.
async fn round_trip(tenant: &Tenant, cell: &Plane, name: &str) -> Result<()> {
    tenant.workload(name, &[("us", &["DFW"], 1)]).await?;
    is_shown(tenant, cell, name).await
}

async fn is_shown(tenant: &Tenant, cell: &Plane, name: &str) -> Result<()> {
    let name = format!("{name}-us-dfw");
    tenant.in_hub(WORKLOAD_DEPLOYMENT, &name, |_| Ok(())).await?;
    tenant.report(cell, &name, 1, 1).await?;
    tenant.shown(&name, 1).await.map(|_| ())
}

async fn accepted(lab: &Lab, token: &str) -> Result<()> {
    eventually("the hub takes the token", SOON, async || {
        let answer = answer(lab, token, CLUSTERS).await?;
        ensure!(answer == 200, "it answers {answer}");
        Ok(())
    })
    .await
}

/// The code that the hub answers who has a token.
async fn answer(lab: &Lab, token: &str, path: &str) -> Result<u16> {
    let document = kubeconfig::document(lab.url("hub")?, Some(lab.ca_file()), &json!({ "token": token }));
    let client: Client = kubeconfig::client(document).await?;
    let request = http::Request::get(path)
        .body(Vec::new())
        .context("failed to make a request")?;
    match client.request_text(request).await {
        Ok(_) => Ok(200),
        Err(kube::Error::Api(status)) => Ok(status.code),
        Err(error) => bail!("no answer of the hub: {error}"),
    }
}
