//! Where a service is: Google's own address, or one that the pipeline file or an emulator's variable names.

use std::net::IpAddr;
use tonic::codegen::http::Uri;

/// The address of a service that is not Google's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// `http://…` or `https://…`, without a path.
    pub url: String,
    /// Without the brackets of an IPv6 address.
    host: String,
}

impl Endpoint {
    /// Reads `host:port`, `http://host:port` or `https://host:port`. Without a scheme it is plain text, as the variables
    /// of the emulators mean it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let help = || format!("{text:?} is not an address: write host:port, http://host:port or https://host:port");
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        // What stands before an @ looks like a host and is none; behind the others is a path, a query, a fragment.
        if let Some(c) = authority.chars().find(|c| "@?#/\\".contains(*c)) {
            return Err(format!("{}, and no {c:?} in it", help()));
        }
        let url = format!("{scheme}://{authority}");
        // The same reading as that of who connects.
        let host = url.parse::<Uri>().ok().and_then(|uri| uri.host().map(str::to_owned)).unwrap_or_default();
        // Nothing but host and port: that reading ends a host in brackets with them, whatever comes behind.
        let behind = authority.strip_prefix(host.as_str()).filter(|_| !host.is_empty());
        let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
        let fits = behind.is_some_and(|behind| behind.is_empty() || behind.strip_prefix(':').is_some_and(is_port));
        if !matches!(scheme, "http" | "https") || !fits {
            return Err(help());
        }
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { url, host })
    }

    /// Whether what is sent can be read on the way.
    pub fn is_plaintext(&self) -> bool {
        self.url.starts_with("http://")
    }

    /// Whether it is on this machine.
    pub fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
    }

    /// Host and port.
    pub fn authority(&self) -> &str {
        self.url.split_once("://").map_or("", |(_, rest)| rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_in_the_forms_that_emulators_are_given_in() {
        for (text, url) in [
            ("localhost:8085", "http://localhost:8085"),
            ("http://127.0.0.1:9050/", "http://127.0.0.1:9050"),
            ("https://bigquery.example.com", "https://bigquery.example.com"),
            ("[::1]:80", "http://[::1]:80"),
        ] {
            assert_eq!(Endpoint::parse(text).unwrap().url, url);
        }
        for text in ["", "ftp://h:1", "http://", "h:port", "h:0", "h:1/path", ":80"] {
            assert!(Endpoint::parse(text).is_err(), "{text}");
        }
    }

    /// Once `localhost` was read here, and everything sent to `evil.example` in plain text.
    #[test]
    fn an_address_that_could_be_read_in_two_ways_is_refused() {
        for text in [
            "http://localhost:80@evil.example:8085",
            "localhost@evil.example",
            "http://localhost:80?@evil.example",
            "http://localhost#evil.example:80",
            "http://localhost/@evil.example",
            "http://localhost\\@evil.example",
            "http://[::1]@evil.example:80",
            "http://[::1]evil.example:80",
            "http://local host:80",
        ] {
            let error = Endpoint::parse(text).unwrap_err();
            assert!(error.contains("write host:port"), "{text}: {error}");
        }
        assert!(Endpoint::parse("a@b:1").unwrap_err().contains("no '@' in it"));
    }

    #[test]
    fn loopback_is_told_from_the_network() {
        let loopback = |text: &str| Endpoint::parse(text).unwrap().is_loopback();
        assert!(
            loopback("localhost:1")
                && loopback("127.0.0.2:1")
                && loopback("[::1]:1")
                && loopback("[::ffff:127.0.0.1]:1")
        );
        assert!(!loopback("10.0.0.1:1") && !loopback("localhost.example.com:1") && !loopback("0.0.0.0:1"));
        assert!(
            Endpoint::parse("h:1").unwrap().is_plaintext() && !Endpoint::parse("https://h").unwrap().is_plaintext()
        );
    }
}
