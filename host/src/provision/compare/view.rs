//! A view against what is there under its name. It is left, be it another view: somebody may read it.

use super::super::commands;
use super::super::model::{FoundView, View};
use super::Difference;

/// How what is there differs. It is in the way of a run only where that makes the view, too.
pub fn compare(wanted: &View, there: &FoundView) -> Vec<Difference> {
    let (what, remedy) = match there {
        FoundView::Same => return Vec::new(),
        FoundView::Another => (
            "it is another view than that of the newest panes: make it anew, it holds no rows".to_owned(),
            Some(commands::replace_view(wanted).command),
        ),
        FoundView::NoView(kind) => {
            (format!("it is no view but of type {kind}: give the aggregate's table another name, or this"), None)
        }
    };
    vec![Difference { what, remedy, blocks: wanted.is_of_run }]
}

#[cfg(test)]
mod tests {
    use super::super::super::model::TableName;
    use super::*;
    use crate::warehouse::NewView;
    use crate::window::Accumulation;

    #[test]
    fn what_is_not_the_view_blocks_only_a_run_that_makes_it() {
        let view = NewView {
            name: "p.d.t_latest".into(),
            table: "p.d.t".into(),
            groups: vec![],
            measures: vec![],
            accumulation: Accumulation::Accumulating,
        };
        let name = TableName::parse(&view.name, "").unwrap();
        let mut wanted = View { name, location: None, view, is_of_run: false };
        assert_eq!(compare(&wanted, &FoundView::Same), []);
        for is_of_run in [false, true] {
            wanted.is_of_run = is_of_run;
            let another = &compare(&wanted, &FoundView::Another)[0];
            assert!(another.what.starts_with("it is another view") && another.blocks == is_of_run, "{another:?}");
            let remedy = another.remedy.as_deref().unwrap();
            assert!(remedy.contains("CREATE OR REPLACE VIEW `p.d.t_latest` AS\nSELECT "), "{remedy}");
            let table = &compare(&wanted, &FoundView::NoView("TABLE".into()))[0];
            assert!(table.what.contains("of type TABLE") && table.remedy.is_none(), "{table:?}");
            assert_eq!(table.blocks, is_of_run);
        }
    }
}
