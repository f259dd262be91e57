//! Things of which exactly one kind can be: what a layer says of another kind takes the place of what is below.

use super::join;
use toml::{Table, Value};

/// A table that says which kind something is of.
struct OneOf {
    /// Where it is; `*` stands for any key.
    path: &'static [&'static str],
    /// The keys that name a kind; none if every key does.
    kinds: &'static [&'static str],
    /// Whether the keys beside those are of the kind, too, and go with it.
    whole: bool,
}

const ONE_OF: [OneOf; 5] = [
    OneOf { path: &["source"], kinds: &[], whole: true },
    OneOf { path: &["warehouse"], kinds: &[], whole: true },
    OneOf { path: &["rules"], kinds: &["components", "store"], whole: false },
    OneOf { path: &["aggregates", "*", "window"], kinds: &["fixed", "sliding", "session"], whole: true },
    OneOf { path: &["aggregates", "*", "measures", "*"], kinds: &[], whole: true },
];

/// Takes what another kind replaces out of the layers below, and returns the paths of it. A layer that names several kinds
/// contradicts itself, and is refused later.
pub(super) fn replace(below: &mut Table, above: &Table) -> Vec<String> {
    let mut gone = Vec::new();
    for one_of in &ONE_OF {
        at(one_of, one_of.path, below, above, &mut Vec::new(), &mut gone);
    }
    gone
}

fn at(one_of: &OneOf, rest: &[&str], below: &mut Table, above: &Table, path: &mut Vec<String>, gone: &mut Vec<String>) {
    let Some((first, rest)) = rest.split_first() else {
        one_of.replace(below, above, path, gone);
        return;
    };
    for (key, value) in below.iter_mut().filter(|(key, _)| *first == "*" || first == key) {
        if let (Value::Table(below), Some(Value::Table(above))) = (value, above.get(key)) {
            path.push(key.clone());
            at(one_of, rest, below, above, path, gone);
            path.pop();
        }
    }
}

impl OneOf {
    fn replace(&self, below: &mut Table, above: &Table, path: &[String], gone: &mut Vec<String>) {
        let is_kind = |key: &str| self.kinds.is_empty() || self.kinds.contains(&key);
        let names_one = above.keys().any(|key| is_kind(key));
        let is_another = |key: &str| is_kind(key) && !above.contains_key(key);
        if !names_one || !below.keys().any(|key| is_another(key)) {
            return;
        }
        below.retain(|key, _| {
            let stays = if is_kind(key) { !is_another(key) } else { !self.whole };
            if !stays {
                gone.push(join(&[path, &[key.to_owned()]].concat()));
            }
            stays
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::layered;

    #[test]
    fn another_kind_of_source_replaces_the_one_below() {
        let layers = layered("[source.pubsub]\nsubscription = 's'\n", "[source.file]\npath = 'e'\n", &[]);
        assert_eq!(layers.table["source"].as_table().unwrap().keys().collect::<Vec<_>>(), ["file"]);
        assert_eq!(layers.table["source"]["file"]["path"].as_str(), Some("other/e"));
        // What was replaced comes from nowhere: its parent stands in the overlay.
        assert_eq!(layers.origin("source.file.path"), Some("over.toml:2"));
        assert_eq!(layers.origin("source.pubsub.subscription"), Some("over.toml:1"));
    }

    #[test]
    fn a_rule_store_replaces_components_below_and_they_a_store() {
        let (components, store) = ("[rules.components]\n1 = 'a.wasm'\n", "[rules]\nstore = 's'\n");
        let keys = |below: &str, above: &str, sets: &[&str]| {
            let layers = layered(below, above, sets);
            layers.table["rules"].as_table().unwrap().keys().cloned().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(keys(components, store, &[]), "store");
        assert_eq!(keys(store, components, &[]), "components");
        assert_eq!(keys(store, "", &["rules.components.2=b.wasm"]), "components");
        assert_eq!(keys("[rules]\ncache = 'c'\n", store, &[]), "cache store");
        // A layer that names both contradicts itself, and is refused.
        assert_eq!(keys("", &format!("{store}{components}"), &[]), "components store");
        assert_eq!(layered(components, store, &[]).origin("rules.components.\"1\""), Some("over.toml:1"));
    }

    #[test]
    fn another_kind_of_window_replaces_the_one_below_and_the_same_is_changed() {
        let window = |above: &str, sets: &[&str]| {
            let base = "[aggregates.a]\nwindow = { sliding = '5 m', every = '1 m', offset = '5 s' }\ntable = 't'\n";
            let layers = layered(base, above, sets);
            assert_eq!(layers.table["aggregates"]["a"]["table"].as_str(), Some("t"));
            layers.table["aggregates"]["a"]["window"].to_string()
        };
        assert_eq!(window("[aggregates.a]\nwindow = { fixed = '1 d' }\n", &[]), "{ fixed = \"1 d\" }");
        assert_eq!(window("", &["aggregates.a.window.session=9 s"]), "{ session = \"9 s\" }");
        let changed = "{ every = \"1 m\", offset = \"5 s\", sliding = \"9 m\" }";
        assert_eq!(window("[aggregates.a]\nwindow.sliding = '9 m'\n", &[]), changed);
        let shifted = "{ every = \"1 m\", offset = \"0 s\", sliding = \"5 m\" }";
        assert_eq!(window("", &["aggregates.a.window.offset=0 s"]), shifted);
    }

    #[test]
    fn another_function_of_a_measure_replaces_the_one_below() {
        let base = "[aggregates.a.measures]\nx = { sum = 'p' }\ny = 'count'\n";
        let over = "[aggregates.a.measures]\nx = { min = 'q' }\ny = { max = 'p' }\n";
        let layers = layered(base, over, &[]);
        let measures = &layers.table["aggregates"]["a"]["measures"];
        assert_eq!(measures["x"].to_string(), "{ min = \"q\" }");
        assert_eq!(measures["y"].to_string(), "{ max = \"p\" }");
        assert_eq!(layers.origin("aggregates.a.measures.x.sum"), Some("over.toml:2"));
    }
}
