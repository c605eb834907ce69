//! Checks and their verdicts. An id never changes its meaning: it is an anchor in docs/troubleshooting.md, and people write
//! alerts on it.

/// A check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "`about` says what each one checks")]
pub enum Id {
    KarmadaReachable,
    ConfigPresent,
    ConfigTimeout,
    ConfigContextVersion,
    ConfigRulesExplicit,
    ConfigRulesMatchModules,
    ConfigKindsServed,
    EndpointAddress,
    CaBundle,
    EndpointResolves,
    EndpointConnects,
    TlsTrusted,
    TlsNames,
    TlsExpiry,
    ClockSkew,
    CallAnswered,
    PrecedenceCustomization,
    PrecedenceWebhook,
    MembersPull,
    MembersCity,
}

impl Id {
    /// Every check, in the order in which a person should read them.
    pub const ALL: [Self; 20] = [
        Self::KarmadaReachable,
        Self::ConfigPresent,
        Self::ConfigTimeout,
        Self::ConfigContextVersion,
        Self::ConfigRulesExplicit,
        Self::ConfigRulesMatchModules,
        Self::ConfigKindsServed,
        Self::EndpointAddress,
        Self::CaBundle,
        Self::EndpointResolves,
        Self::EndpointConnects,
        Self::TlsTrusted,
        Self::TlsNames,
        Self::TlsExpiry,
        Self::ClockSkew,
        Self::CallAnswered,
        Self::PrecedenceCustomization,
        Self::PrecedenceWebhook,
        Self::MembersPull,
        Self::MembersCity,
    ];

    /// The id as it is printed.
    pub const fn as_str(self) -> &'static str {
        self.texts().0
    }

    /// Under which heading it is printed.
    pub const fn category(self) -> &'static str {
        match self {
            Self::KarmadaReachable => "karmada",
            Self::ConfigPresent
            | Self::ConfigTimeout
            | Self::ConfigContextVersion
            | Self::ConfigRulesExplicit
            | Self::ConfigRulesMatchModules
            | Self::ConfigKindsServed => "configuration",
            Self::EndpointAddress | Self::CaBundle | Self::EndpointResolves | Self::EndpointConnects => "endpoint",
            Self::TlsTrusted | Self::TlsNames | Self::TlsExpiry | Self::ClockSkew => "certificate",
            Self::CallAnswered => "interpreter",
            Self::PrecedenceCustomization | Self::PrecedenceWebhook => "precedence",
            Self::MembersPull | Self::MembersCity => "members",
        }
    }

    /// What it checks.
    pub const fn about(self) -> &'static str {
        self.texts().1
    }

    /// What to do when it fails.
    pub const fn remedy(self) -> &'static str {
        self.texts().2
    }

    const fn texts(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::KarmadaReachable => (
                "karmada-reachable",
                "the Karmada API server answers and lets us read",
                "look at --kubeconfig and --context; the rights are in manifests/webhook/components/register/register.rbac.yaml",
            ),
            Self::ConfigPresent => ("config-present", "our webhook is registered", "run `popcell register`"),
            Self::ConfigTimeout => (
                "config-timeout",
                "timeoutSeconds is set: without it a hung call blocks a worker of Karmada for ever",
                "run `popcell register --timeout-seconds 5`",
            ),
            Self::ConfigContextVersion => (
                "config-context-version",
                "interpreterContextVersions has v1alpha1",
                "run `popcell register`",
            ),
            Self::ConfigRulesExplicit => (
                "config-rules-explicit",
                "no rule has a `*`: it would switch on operations that no module has",
                "run `popcell register`, which writes one exact rule per kind",
            ),
            Self::ConfigRulesMatchModules => (
                "config-rules-match-modules",
                "the rules are what the modules register",
                "run `popcell register --module-dir` with the modules that the webhook serves",
            ),
            Self::ConfigKindsServed => (
                "config-kinds-served",
                "the Karmada API server has the kinds of the rules, and a status where we aggregate it",
                "install the CRD of the kind there, with `subresources: {status: {}}`",
            ),
            Self::EndpointAddress => (
                "endpoint-address",
                "the URL or Service is one that Karmada can call",
                "run `popcell register` with --url or --service",
            ),
            Self::CaBundle => (
                "ca-bundle",
                "the caBundle holds certificates that are valid now",
                "run `popcell register --ca-file` with the CA of the webhook's certificate",
            ),
            Self::EndpointResolves => (
                "endpoint-resolves",
                "the host has an address here",
                "register a name that resolves wherever Karmada and its agents run, or an IP address",
            ),
            Self::EndpointConnects => (
                "endpoint-connects",
                "the port accepts a connection from here",
                "start the webhook; look at network policies and firewalls between here and there",
            ),
            Self::TlsTrusted => (
                "tls-trusted",
                "the certificate chains to the caBundle",
                "run `popcell register --ca-file` with the CA that signed it, or give the webhook a certificate of the registered CA",
            ),
            Self::TlsNames => (
                "tls-names",
                "the certificate names the host in its SAN (the common name does not count)",
                "issue the certificate for that name (--san, or dnsNames and ipAddresses of the Certificate)",
            ),
            Self::TlsExpiry => (
                "tls-expiry",
                "the certificate is valid now, and for some time to come",
                "renew it; the webhook takes the new files without a restart",
            ),
            Self::ClockSkew => (
                "clock-skew",
                "the clocks here, of the Karmada API server and of the webhook agree: validity of certificates is judged by them",
                "synchronise the clocks (NTP) of the machines that are named",
            ),
            Self::CallAnswered => (
                "call-answered",
                "every registered operation is answered, well within timeoutSeconds",
                "give the webhook the module for it, or run `popcell register` with the modules that it has",
            ),
            Self::PrecedenceCustomization => (
                "precedence-customization",
                "no ResourceInterpreterCustomization takes an operation of ours",
                "delete the customization, or the script of that operation in it",
            ),
            Self::PrecedenceWebhook => (
                "precedence-webhook",
                "no webhook before ours takes an operation of ours",
                "remove that rule, or register under names that sort before it (--config-name, --webhook-name)",
            ),
            Self::MembersPull => (
                "members-pull",
                "agents of Pull members can reach the webhook: it is registered by URL",
                "run `popcell register --url` with an address that the agents reach",
            ),
            Self::MembersCity => (
                "members-city",
                "each city is the label of one cluster, in one spelling",
                "label one cluster per city, with the spelling that workloads use",
            ),
        }
    }
}

/// How a check ended. Each text says what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// In order.
    Pass(String),
    /// In order today.
    Warn(String),
    /// Not in order.
    Fail(String),
    /// Could not be looked at, because of something before it.
    Skip(String),
}

/// A check and its verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Which.
    pub id: Id,
    /// How it ended.
    pub verdict: Verdict,
}

impl Check {
    pub(super) fn new(id: Id, verdict: Verdict) -> Self {
        Self { id, verdict }
    }

    pub(super) fn skip(id: Id, reason: &str) -> Self {
        Self::new(id, Verdict::Skip(reason.to_owned()))
    }

    /// `Ok` = in order.
    pub(super) fn of(id: Id, result: Result<impl Into<String>, impl Into<String>>) -> Self {
        Self::new(
            id,
            match result {
                Ok(found) => Verdict::Pass(found.into()),
                Err(found) => Verdict::Fail(found.into()),
            },
        )
    }
}
