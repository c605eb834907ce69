//! HTTP/2 as a client writes it that keeps to no library: one frame after the other.

use tokio::io::{AsyncReadExt, AsyncWriteExt, WriteHalf, split};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::Client;

const HEADERS: u8 = 1;
const UNKNOWN: u8 = 99;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// What a client writes; whatever comes back is read and dropped.
pub(crate) struct Frames(WriteHalf<TlsStream<TcpStream>>);

impl Frames {
    pub(crate) async fn open(client: &Client) -> Self {
        let (mut reader, writer) = split(client.dial("h2").await.unwrap());
        tokio::spawn(async move {
            let mut piece = [0; 4096];
            while reader.read(&mut piece).await.unwrap_or(0) > 0 {}
        });
        let mut frames = Self(writer);
        frames.0.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        frames.write(4, 0, 0, &[]).await;
        frames
    }

    /// A head without its body.
    pub(crate) async fn begin(&mut self, stream: u32, head: &[u8]) {
        self.write(HEADERS, END_HEADERS, stream, head).await;
    }

    /// A whole request without a body.
    pub(crate) async fn ask(&mut self, stream: u32, head: &[u8]) {
        self.write(HEADERS, END_HEADERS | END_STREAM, stream, head).await;
    }

    /// A piece of a body.
    pub(crate) async fn send(&mut self, stream: u32, piece: &[u8]) {
        self.write(0, 0, stream, piece).await;
    }

    /// So many bytes of what means nothing.
    pub(crate) async fn fill(&mut self, size: usize) {
        self.write(UNKNOWN, 0, 0, &vec![0; size]).await;
    }

    /// Whatever was written is on its way.
    pub(crate) async fn flush(&mut self) {
        self.0.flush().await.unwrap();
    }

    async fn write(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let size = u32::try_from(payload.len()).unwrap();
        let mut frame = size.to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        self.0.write_all(&frame).await.unwrap();
    }
}

/// `POST` to a path, as a block of headers.
pub(crate) fn post(path: &str) -> Vec<u8> {
    let mut block = vec![0x83, 0x87];
    block.extend(literal(0x04, path));
    block.extend(literal(0x01, "x"));
    block
}

/// `GET` of a path that goes into the table of headers.
pub(crate) fn get_kept(path: &str) -> Vec<u8> {
    let mut block = vec![0x82, 0x87];
    block.extend(literal(0x44, path));
    block.extend(literal(0x01, "x"));
    block
}

/// A field that goes into no table.
pub(crate) fn field(name: &str, value: &str) -> Vec<u8> {
    let mut field = literal(0x00, name);
    field.extend(text(value));
    field
}

fn literal(first: u8, value: &str) -> Vec<u8> {
    let mut literal = vec![first];
    literal.extend(text(value));
    literal
}

/// A string with its length in front (RFC 7541, 5.1 and 5.2).
fn text(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut rest) = text.len().checked_sub(127) {
        bytes.push(127);
        while rest >= 128 {
            bytes.push(u8::try_from(rest % 128).unwrap() | 128);
            rest /= 128;
        }
        bytes.push(u8::try_from(rest).unwrap());
    } else {
        bytes.push(u8::try_from(text.len()).unwrap());
    }
    bytes.extend(text.as_bytes());
    bytes
}
