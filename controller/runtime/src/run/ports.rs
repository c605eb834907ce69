//! The ports of the program: reviews at admission, probes, metrics.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use popcell_core::metrics as table;
use popcell_https::{Certificates, FilePair, Limits, ListenError, Listener, Source};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::RunError;
use crate::admission::{Admission, Endpoint, Mode, ServeError, router};
use crate::config::{Certificate, Discovery, Settings};
use crate::health::{self, Check, Health, Readiness};
use crate::metrics::Metrics;
use crate::planes::{Direct, InstanceTypes};

/// The name of a port.
const METRICS: &str = "the metrics port";
/// How often to look for a new certificate.
const RELOAD: Duration = Duration::from_secs(30);
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Ports that are served.
#[derive(Default)]
pub(super) struct Ports {
    stop: CancellationToken,
    readiness: Readiness,
    /// The name of each, for reports.
    serving: JoinSet<Result<&'static str, RunError>>,
    health: Option<Health>,
}

impl Ports {
    /// Reviews Workloads, where the configuration has a webhook server.
    pub(super) async fn serve_admission(
        &mut self,
        settings: &Settings,
        transport: &Direct,
        types: &InstanceTypes,
        metrics: &Metrics,
    ) -> Result<(), RunError> {
        let Some(webhook) = &settings.webhook else {
            return Ok(());
        };
        let endpoint = Endpoint::bind(webhook.listen, files(&webhook.certificate)).await?;
        let mode = match settings.discovery {
            Discovery::Single => Mode::Single,
            Discovery::Milo(_) => Mode::Milo,
        };
        let metrics = metrics.clone();
        let record = Arc::new(move |outcome: &'static str, took: Duration| {
            metrics.count(&table::ADMISSION, &[outcome]);
            metrics.observe(&table::ADMISSION_SECONDS, &[], took);
        });
        let bytes = settings.limits.object_bytes;
        // The threads of this port may be busy with a review, and neither the Lease nor a watch waits for them.
        let transport = Direct {
            tokens: transport.tokens.apart(),
            ..transport.clone()
        };
        let admission = Admission::new(mode, Arc::new(transport), record, bytes);
        let router = router(admission.with_types(types.clone()));
        let stop = self.stop.clone();
        self.serving.spawn(async move {
            endpoint.serve(router, RELOAD, stop).await?;
            Ok("the admission port")
        });
        Ok(())
    }

    /// Probes, and metrics where they have a port of their own.
    pub(super) async fn serve_health(
        &mut self,
        settings: &Settings,
        mut checks: Vec<Check>,
        metrics: &Metrics,
    ) -> Result<(), RunError> {
        checks.push(self.readiness.check());
        if let Some(address) = settings.health {
            self.health = Some(health::start(address, checks, metrics.clone()).await?);
        }
        if let Some(port) = &settings.metrics {
            let router = pages(metrics);
            let listener = bind(port.listen).await?;
            let stop = self.stop.clone();
            match port.certificate.as_ref().map(files) {
                None => {
                    self.serving.spawn(async move {
                        listener.serve_plain(router, stop).await?;
                        Ok(METRICS)
                    });
                }
                Some(files) => {
                    let certificates = Certificates::open(Source::Files(files)).map_err(ServeError::from)?;
                    let certificates = Arc::new(certificates);
                    self.serving.spawn(async move {
                        listener.serve_renewing(certificates, RELOAD, router, stop).await?;
                        Ok(METRICS)
                    });
                }
            }
        }
        Ok(())
    }

    /// A port ended by itself; waits forever where none does.
    pub(super) async fn failed(&mut self) -> RunError {
        let health = async {
            match &self.health {
                Some(health) => health.ended().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(ended) = self.serving.join_next() => match ended {
                Ok(Ok(port)) => RunError::ended(port),
                Ok(Err(error)) => error,
                Err(how) => RunError::died("a port", how),
            },
            () = health => RunError::ended("the health port"),
        }
    }

    /// New requests should go elsewhere.
    pub(super) fn leave(&self) {
        self.readiness.leave();
    }

    /// Ends every port; reviews that were begun are answered.
    pub(super) async fn stop(mut self) {
        self.stop.cancel();
        while self.serving.join_next().await.is_some() {}
        if let Some(health) = self.health {
            health.stop().await;
        }
    }
}

/// The port of metrics. Its memory is small: that of the process is for what it keeps, and for admission.
async fn bind(address: SocketAddr) -> Result<Listener, ListenError> {
    let listener = Listener::bind(address, Limits::for_scrapers()).await?;
    listener.on_threads(NonZeroUsize::MIN)
}

fn pages(metrics: &Metrics) -> Router {
    let metrics = metrics.clone();
    let scrape = move || {
        let text = metrics.encode();
        async move { ([(CONTENT_TYPE, OPEN_METRICS)], text) }
    };
    Router::new().route("/metrics", get(scrape))
}

fn files(certificate: &Certificate) -> FilePair {
    FilePair {
        certificate: certificate.certificate.clone(),
        key: certificate.key.clone(),
        names: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn the_port_of_metrics_has_few_places_and_a_scraper_finds_one() {
        let metrics = Metrics::new();
        metrics.before_scrape(Box::new(|metrics| metrics.set(&table::LEADER, &[], 1.0)));
        let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let (address, status) = (listener.address(), listener.status());
        let stop = CancellationToken::new();
        let served = tokio::spawn(listener.serve_plain(pages(&metrics), stop.clone()));
        let mut idle = Vec::new();
        for _ in 0..100 {
            idle.push(TcpStream::connect(address).await.unwrap());
        }
        let mut scraper = TcpStream::connect(address).await.unwrap();
        let request = b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        scraper.write_all(request).await.unwrap();
        let mut answer = String::new();
        scraper.read_to_string(&mut answer).await.unwrap();
        assert!(answer.contains("\npopcell_leader 1.0\n"), "{answer}");
        let places = Limits::for_scrapers().connections;
        let open = status.open.load(Ordering::Relaxed);
        assert!(open <= places, "{open} connections of {places}");
        drop(idle);
        stop.cancel();
        served.await.unwrap().unwrap();
    }
}
