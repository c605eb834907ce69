//! Checks and their verdicts. An id never changes its meaning: it is an anchor in docs/troubleshooting.md, and people write
//! alerts on it.

/// Makes [`Id`] of a table: each check with its heading, its id as it is printed, what it checks, and what to do when it fails.
macro_rules! checks {
    ($($name:ident in $category:literal is $id:literal: $about:literal, $fix:literal;)+) => {
        /// A check.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "`about` says what each one checks")]
        pub enum Id {
            $($name,)+
        }

        impl Id {
            /// Every check, in the order in which a person should read them.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// The id as it is printed.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $id,)+ }
            }

            /// Under which heading it is printed.
            pub const fn category(self) -> &'static str {
                match self { $(Self::$name => $category,)+ }
            }

            /// What it checks.
            pub const fn about(self) -> &'static str {
                match self { $(Self::$name => $about,)+ }
            }

            /// What to do when it fails.
            pub const fn fix(self) -> &'static str {
                match self { $(Self::$name => $fix,)+ }
            }
        }
    };
}

checks! {
    KarmadaReachable in "karmada" is "karmada-reachable":
        "the Karmada API server answers and lets us read",
        "look at --kubeconfig and --context; the rights are in manifests/webhook/components/register/register.rbac.yaml";
    ConfigPresent in "configuration" is "config-present":
        "our webhook is registered",
        "run `popcell register`";
    ConfigTimeout in "configuration" is "config-timeout":
        "timeoutSeconds is set: without it a hung call blocks a worker of Karmada forever",
        "run `popcell register --timeout-seconds 5`";
    ConfigContextVersion in "configuration" is "config-context-version":
        "interpreterContextVersions has v1alpha1",
        "run `popcell register`";
    ConfigRulesExplicit in "configuration" is "config-rules-explicit":
        "no rule has a `*`: it would switch on operations that no module has",
        "run `popcell register`, which writes one exact rule per kind";
    ConfigRulesMatchModules in "configuration" is "config-rules-match-modules":
        "the rules are what the modules register",
        "run `popcell register --module-dir` with the modules that the webhook serves";
    ConfigKindsServed in "configuration" is "config-kinds-served":
        "the Karmada API server has the kinds of the rules, and a status where we aggregate it",
        "install the CRD of the kind there, with `subresources: {status: {}}`";
    EndpointAddress in "endpoint" is "endpoint-address":
        "the URL or Service is one that Karmada can call",
        "run `popcell register` with --url or --service";
    CaBundle in "endpoint" is "ca-bundle":
        "the caBundle holds certificates that are valid now",
        "run `popcell register --ca-file` with the CA of the webhook's certificate";
    EndpointResolves in "endpoint" is "endpoint-resolves":
        "the host has an address here",
        "register a name that resolves wherever Karmada and its agents run, or an IP address";
    EndpointConnects in "endpoint" is "endpoint-connects":
        "the port accepts a connection from here",
        "start the webhook; look at network policies and firewalls between here and there";
    TlsTrusted in "certificate" is "tls-trusted":
        "the certificate chains to the caBundle",
        "run `popcell register --ca-file` with the CA that signed it, or give the webhook a certificate of the registered CA";
    TlsNames in "certificate" is "tls-names":
        "the certificate names the host in its SAN (the common name does not count)",
        "issue the certificate for that name (--san, or dnsNames and ipAddresses of the Certificate)";
    TlsExpiry in "certificate" is "tls-expiry":
        "the certificate is valid now, and for some time to come",
        "renew it; the webhook takes the new files without a restart";
    ClockSkew in "certificate" is "clock-skew":
        "the clocks here, of the Karmada API server and of the webhook agree: validity of certificates is judged by them",
        "synchronise the clocks (NTP) of the machines that are named";
    CallAnswered in "interpreter" is "call-answered":
        "every registered operation is answered, well within timeoutSeconds",
        "give the webhook the module for it, or run `popcell register` with the modules that it has";
    PrecedenceCustomization in "precedence" is "precedence-customization":
        "no ResourceInterpreterCustomization takes an operation of ours",
        "delete the customization, or the script of that operation in it";
    PrecedenceWebhook in "precedence" is "precedence-webhook":
        "no webhook before ours takes an operation of ours",
        "remove that rule, or register under names that sort before it (--config-name, --webhook-name)";
    MembersPull in "members" is "members-pull":
        "agents of Pull members can reach the webhook: it is registered by URL",
        "run `popcell register --url` with an address that the agents reach";
    MembersCity in "members" is "members-city":
        "each city is the label of one cluster, in one spelling",
        "label one cluster per city, with the spelling that workloads use";
}

/// How a check ended. Each text says what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckResult {
    /// In order.
    Pass(String),
    /// In order today.
    Warn(String),
    /// Not in order.
    Fail(String),
    /// Could not be looked at, because of something before it.
    Skip(String),
}

impl CheckResult {
    /// The verdict as it is printed, and what was found.
    pub(super) fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::Pass(found) => ("ok", found),
            Self::Warn(found) => ("warn", found),
            Self::Fail(found) => ("fail", found),
            Self::Skip(found) => ("skip", found),
        }
    }
}

/// A check and its verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Which.
    pub id: Id,
    /// How it ended.
    pub result: CheckResult,
}

impl Check {
    pub(super) fn new(id: Id, result: CheckResult) -> Self {
        Self { id, result }
    }

    pub(super) fn skip(id: Id, reason: &str) -> Self {
        Self::new(id, CheckResult::Skip(reason.to_owned()))
    }

    /// `Ok` = in order.
    pub(super) fn of(id: Id, result: Result<impl Into<String>, impl Into<String>>) -> Self {
        Self::new(
            id,
            result.map_or_else(
                |found| CheckResult::Fail(found.into()),
                |found| CheckResult::Pass(found.into()),
            ),
        )
    }

    pub(super) fn failed(&self) -> bool {
        matches!(self.result, CheckResult::Fail(_))
    }
}
