//! The hub's trust in tokens of another cluster, set up by what docs/operations.md says of it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use popcell_test_support::{Lab, workspace};

/// Where operators read it.
const PAGE: &str = "docs/operations.md";
/// What they replace.
const ISSUER: &str = "https://your-issuer";
const AUTHORITY: &str = "your-CA-in-PEM";

/// The authentication configuration of a hub, which its API server reads again when it changes.
#[derive(Debug)]
pub struct Trust {
    file: PathBuf,
}

impl Trust {
    /// A file in the directory, of a hub that trusts no other issuer yet.
    pub fn in_none(dir: &Path) -> Result<Self> {
        let file = dir.join("authentication.yaml");
        let trust = Self { file };
        trust.write("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt: []\n")?;
        Ok(trust)
    }

    /// The flag of the hub's API server, for [`popcell_test_support::LabSpec::hub_flag`].
    #[must_use]
    pub fn flag(&self) -> String {
        format!("--authentication-config={}", self.file.display())
    }

    /// Lets the hub trust the tokens of a plane of the lab. Until it does, some ten seconds may pass.
    pub async fn put_in(&self, lab: &Lab, plane: &str) -> Result<()> {
        let discovery = workspace::yaml_of_page(PAGE, "name: system:service-account-issuer-discovery")?;
        let discovery = workspace::yaml_text(&discovery).context("the binding on the page is no YAML")?;
        lab.plane(plane).await?.apply(&discovery).await?;
        let shown = workspace::yaml_of_page(PAGE, "kind: AuthenticationConfiguration")?;
        for placeholder in [ISSUER, AUTHORITY] {
            ensure!(shown.contains(placeholder), "{PAGE} does not ask for {placeholder}");
        }
        let authority = fs::read_to_string(lab.ca_file()).context("failed to read the lab's CA")?;
        // A block of text keeps the indentation of its first line.
        let authority = authority.trim().replace('\n', "\n        ");
        let configuration = shown.replace(ISSUER, lab.url(plane)?).replace(AUTHORITY, &authority);
        self.write(&configuration)
    }

    /// Has the hub read the keys of its issuers again, as operators are told to: by a comment.
    pub fn read_keys_again(&self) -> Result<()> {
        let text = fs::read_to_string(&self.file).with_context(|| format!("failed to read {}", self.file.display()))?;
        self.write(&format!("{text}# The issuer has other keys.\n"))
    }

    fn write(&self, text: &str) -> Result<()> {
        fs::write(&self.file, text).with_context(|| format!("failed to write {}", self.file.display()))
    }
}
