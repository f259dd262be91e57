//! Where a service is: Google's own address, or one that the pipeline file or an emulator's variable names.

use std::net::IpAddr;

/// The address of a service that is not Google's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// `http://…` or `https://…`, without a path.
    pub url: String,
}

impl Endpoint {
    /// Reads `host:port`, `http://host:port` or `https://host:port`. Without a scheme it is plain text, as the variables
    /// of the emulators mean it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let help = || format!("{text:?} is not an address: write host:port, http://host:port or https://host:port");
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        let port = authority.rsplit_once(':').map(|(_, port)| port);
        let port_fits = port.is_none_or(|port| port.ends_with(']') || port.parse::<u16>().is_ok_and(|port| port > 0));
        if !matches!(scheme, "http" | "https") || authority.is_empty() || authority.contains('/') || !port_fits {
            return Err(help());
        }
        let endpoint = Self { url: format!("{scheme}://{authority}") };
        if endpoint.host().is_empty() { Err(help()) } else { Ok(endpoint) }
    }

    /// Whether what is sent can be read on the way.
    pub fn is_plaintext(&self) -> bool {
        self.url.starts_with("http://")
    }

    /// Whether it is on this machine.
    pub fn is_loopback(&self) -> bool {
        let host = self.host();
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
    }

    /// Host and port.
    pub fn authority(&self) -> &str {
        self.url.split_once("://").map_or("", |(_, rest)| rest)
    }

    fn host(&self) -> &str {
        let authority = self.authority();
        match authority.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => authority.split(':').next().unwrap_or_default(),
        }
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
