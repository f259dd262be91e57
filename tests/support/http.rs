//! A plain HTTP client: one request, one connection, and what came back.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Longer than any answer of a test takes.
const HANGS: Duration = Duration::from_secs(30);

/// What was answered.
#[derive(Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The header's lines, in lower case.
    pub head: String,
    /// The rest.
    pub body: String,
}

impl Answer {
    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// The value of a sample of the metrics in the body.
    #[track_caller]
    pub fn metric(&self, series: &str) -> &str {
        let value = self.body.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("no {series} in {}", self.body))
    }

    /// The sum of the counts that begin like this.
    #[track_caller]
    pub fn counted(&self, start: &str) -> u64 {
        let counts = self.body.lines().filter(|line| line.starts_with(start)).filter_map(|line| line.rsplit_once(' '));
        counts.map(|(_, count)| count.parse::<u64>().expect("a count")).sum()
    }
}

/// A connection that fails rather than waits for ever.
pub fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the endpoint takes connections");
    stream.set_read_timeout(Some(HANGS)).expect("a timeout can be set");
    stream
}

/// Asks for a path and reads the answer to the end of the connection.
#[track_caller]
pub fn request(address: &str, method: &str, path: &str) -> Answer {
    let mut stream = connect(address);
    write!(stream, "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")
        .expect("the request can be sent");
    read(stream)
}

/// Reads an answer: as much as it says it has, else to the end of the connection, which not every server closes.
#[track_caller]
fn read(stream: TcpStream) -> Answer {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        let read = stream.read_line(&mut head).expect("an answer begins with text");
        assert!(read > 0, "no answer: {head:?}");
    }
    let head = head.trim_end().to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = String::new();
    stream.take(length.unwrap_or(u64::MAX)).read_to_string(&mut body).expect("an answer is text, and ends");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("an answer has a status");
    Answer { status, head, body }
}

/// POST of a JSON value.
#[track_caller]
pub fn post(address: &str, path: &str, body: &Value) -> Answer {
    send("POST", address, path, body)
}

/// Sends a JSON value, and has the connection ended with the answer.
#[track_caller]
pub fn send(method: &str, address: &str, path: &str, body: &Value) -> Answer {
    let mut stream = connect(address);
    let body = body.to_string();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("the request can be sent");
    read(stream)
}

/// GET.
#[track_caller]
pub fn get(address: &str, path: &str) -> Answer {
    request(address, "GET", path)
}
