//! Pages of a program's plain ports: health and metrics.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// One request over HTTP/1.0: status and body.
pub async fn get(endpoint: (Ipv4Addr, u16), path: &str) -> Result<(u16, String)> {
    let exchange = async {
        let mut stream = TcpStream::connect(endpoint).await?;
        stream
            .write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes())
            .await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = tokio::time::timeout(Duration::from_secs(10), exchange).await;
    let answer = answer.with_context(|| format!("no answer from {path} within 10 s"))?;
    let answer = answer.with_context(|| format!("failed to get {path} from {}:{}", endpoint.0, endpoint.1))?;
    let text = String::from_utf8_lossy(&answer);
    let (head, body) = text.split_once("\r\n\r\n").context("not an HTTP answer")?;
    let code = head
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .context("not an HTTP answer")?;
    Ok((code, body.to_owned()))
}

/// The sum of the samples of one metric whose labels contain every text of `with`, such as `kind="Widget"`.
#[must_use]
pub fn sum_of(metrics: &str, name: &str, with: &[&str]) -> f64 {
    let samples = metrics.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        let (labels, value) = rest.rsplit_once(' ')?;
        let whole_name = labels.is_empty() || labels.starts_with('{');
        (whole_name && with.iter().all(|label| labels.contains(label))).then(|| value.parse::<f64>().ok())?
    });
    samples.sum()
}

/// Labels and value of each sample of a metric that has labels.
pub fn samples<'a>(page: &'a str, metric: &str) -> impl Iterator<Item = (&'a str, f64)> {
    page.lines().filter_map(move |line| {
        let (labels, value) = line.strip_prefix(metric)?.strip_prefix('{')?.split_once("} ")?;
        Some((labels, value.parse().ok()?))
    })
}

/// The value of a label; no value of the metrics that are read here has a quotation mark or a comma in it.
#[must_use]
pub fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = labels.split(',').filter_map(|pair| pair.split_once('='));
    pairs
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value.trim_matches('"'))
}

/// Requests that an API server has had, whatever it answered, by verb and resource (`"PATCH workloads"`); each watch counts
/// when it ends.
#[must_use]
pub fn requests_by_kind(page: &str) -> BTreeMap<String, f64> {
    let mut found = BTreeMap::new();
    for (labels, count) in samples(page, "apiserver_request_total") {
        let [verb, resource] = ["verb", "resource"].map(|name| label(labels, name).unwrap_or_default());
        *found.entry(format!("{verb} {resource}")).or_insert(0.0) += count;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_the_samples_that_match() {
        let page = "calls_total{kind=\"A\",outcome=\"ok\"} 2\ncalls_total{kind=\"B\",outcome=\"ok\"} 3\n\
                    calls_total_other{kind=\"A\"} 9\nplain 4\n";
        assert!((sum_of(page, "calls_total", &["outcome=\"ok\""]) - 5.0).abs() < f64::EPSILON);
        assert!((sum_of(page, "calls_total", &["kind=\"A\""]) - 2.0).abs() < f64::EPSILON);
        assert!((sum_of(page, "plain", &[]) - 4.0).abs() < f64::EPSILON);
    }
    #[test]
    fn requests_are_summed_over_answers() {
        let page = "apiserver_request_total{code=\"200\",resource=\"workloads\",verb=\"PATCH\"} 2\n\
                    apiserver_request_total{code=\"422\",resource=\"workloads\",verb=\"PATCH\"} 1\n\
                    apiserver_request_total{code=\"200\",resource=\"\",verb=\"GET\"} 5\n";
        let expected = [("GET ".to_owned(), 5.0), ("PATCH workloads".to_owned(), 3.0)];
        assert_eq!(requests_by_kind(page), expected.into());
    }
}
