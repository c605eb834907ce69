//! The events of a watch, one in a line.
//!
//! kube's own decoder takes a line as long as it comes, and reads an object that stands before its type as a value.

use std::io;

use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::core::Status;
use popcell_core::object::{EventLine, Raw};

use super::{Broken, PAGE_BYTES};

/// One event.
pub(super) enum Line {
    Applied(Raw),
    Deleted(Raw),
    /// How far the watch is, as a resourceVersion.
    Bookmark(String),
    /// The watch ends with an error.
    Error(Box<Status>),
}

impl Line {
    fn read(text: &[u8]) -> Result<Self, Broken> {
        let form = |error: serde_json::Error| Broken::form(&error);
        let event = EventLine::read(text).map_err(form)?;
        let object = event.object();
        Ok(match event.kind.as_ref() {
            "DELETED" => Self::Deleted(Raw::read(object)),
            "BOOKMARK" => Self::Bookmark(Raw::read(object).version().to_owned()),
            "ERROR" => Self::Error(serde_json::from_str(object).map_err(form)?),
            _ => Self::Applied(Raw::read(object)),
        })
    }
}

/// The lines of a body.
pub(super) struct Lines {
    body: Body,
    read: Vec<u8>,
}

impl Lines {
    pub(super) fn new(body: Body) -> Self {
        Self { body, read: Vec::new() }
    }

    /// The next event; `None` where the server has ended the watch, also in the middle of a line.
    pub(super) async fn next(&mut self) -> Option<Result<Line, Broken>> {
        let mut searched = 0;
        loop {
            let unread = self.read.get(searched..).unwrap_or_default();
            if let Some(end) = unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=searched + end).collect();
                // Nothing stays allocated for the largest event there ever was.
                self.read.shrink_to(4096);
                searched = 0;
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                return Some(Line::read(&line));
            }
            searched = self.read.len();
            if searched > PAGE_BYTES {
                return Some(Err(Broken::TooLarge));
            }
            match self.body.frame().await? {
                Ok(frame) => {
                    if let Ok(data) = frame.into_data() {
                        self.read.extend_from_slice(&data);
                    }
                }
                Err(error) if is_end(&error) => return None,
                Err(error) => return Some(Err(error.into())),
            }
        }
    }
}

/// How servers and load balancers end watches that have lasted long enough.
fn is_end(error: &(dyn std::error::Error + 'static)) -> bool {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.into_iter().any(|cause| {
        let is_eof = |error: &io::Error| error.kind() == io::ErrorKind::UnexpectedEof;
        cause.downcast_ref::<io::Error>().is_some_and(is_eof)
            || cause.to_string().contains("unexpected EOF during chunk")
    })
}

#[cfg(test)]
mod tests {
    use futures::{StreamExt as _, stream};

    use super::*;

    async fn lines(parts: &'static [&'static str]) -> Lines {
        let answer = move |_: http::Request<Body>| async move {
            let parts = stream::iter(parts).map(|part| Ok::<_, io::Error>(*part));
            Ok::<_, io::Error>(http::Response::new(axum::body::Body::from_stream(parts)))
        };
        let client = kube::Client::new(tower::service_fn(answer), "default");
        let request = http::Request::new(Body::empty());
        Lines::new(client.send(request).await.unwrap().into_body())
    }

    async fn names(lines: &mut Lines) -> Vec<String> {
        let mut names = Vec::new();
        while let Some(line) = lines.next().await {
            names.push(match line {
                Ok(Line::Applied(raw)) => format!("+{}", raw.name()),
                Ok(Line::Deleted(raw)) => format!("-{}", raw.name()),
                Ok(Line::Bookmark(version)) => format!("@{version}"),
                Ok(Line::Error(status)) => format!("!{}", status.code),
                Err(error) => error.to_string(),
            });
        }
        names
    }

    #[tokio::test]
    async fn events_are_read_however_they_are_cut_and_ordered() {
        let mut lines = lines(&[
            "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a",
            "\"}}}\n\n{\"object\":{\"metadata\":{\"name\":\"b\"}},\"type\":\"DELETED\"}\n",
            "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"7\"}}}\n",
            "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410}}\n{\"type\":\"ADDED\",\"obj",
        ])
        .await;
        assert_eq!(names(&mut lines).await, ["+a", "-b", "@7", "!410"]);
    }

    #[tokio::test]
    async fn what_is_no_event_is_an_error_without_its_values() {
        let reported = names(&mut lines(&["<html>s3cret</html>\n"]).await).await;
        assert!(
            reported.concat().contains("no JSON") && !reported.concat().contains("s3cret"),
            "{reported:?}"
        );
    }

    #[tokio::test]
    async fn a_line_without_end_is_given_up() {
        const PART: &str = match str::from_utf8(&[b'x'; 1 << 20]) {
            Ok(part) => part,
            Err(_) => "",
        };
        let mut lines = lines(&[PART; 10]).await;
        assert!(matches!(lines.next().await, Some(Err(Broken::TooLarge))));
    }
}
