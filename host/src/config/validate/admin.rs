//! Where the admin endpoint listens.

use super::check::Check;
use crate::config::AdminConfig;
use crate::config::raw::RawAdmin;
use std::net::SocketAddr;

impl Check {
    /// Whoever reaches the endpoint may read what pipelines do, so it is not opened to a network by mistake.
    pub(super) fn admin(&mut self, raw: &RawAdmin) -> Option<AdminConfig> {
        let key = "admin.listen";
        let Ok(listen) = raw.listen.parse::<SocketAddr>() else {
            let what = format!("{:?} is not an address: write IP and port, such as \"127.0.0.1:9464\"", raw.listen);
            return self.refuse(key, what);
        };
        if listen.ip().to_canonical().is_loopback() || raw.allow_remote {
            return Some(AdminConfig { listen });
        }
        let what = format!(
            "{listen} can be reached from other machines, and the endpoint asks nobody who they are: use 127.0.0.1, or \
             say allow_remote = true"
        );
        self.refuse(key, what)
    }
}
