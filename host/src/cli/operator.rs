//! Who types a command.

/// Who types this, as histories and tables record it: `user@host`, as far as the environment tells.
pub(super) fn operator() -> String {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let user = variable("USER")
        .or_else(|| variable("LOGNAME"))
        .unwrap_or_else(|| format!("uid-{}", rustix::process::getuid().as_raw()));
    let file = |path| std::fs::read_to_string(path).ok().map(|name| name.trim().to_owned()).filter(|n| !n.is_empty());
    let host = variable("HOSTNAME").or_else(|| file("/proc/sys/kernel/hostname")).or_else(|| file("/etc/hostname"));
    format!("{user}@{}", host.as_deref().unwrap_or("unknown"))
}
