//! A test of the view against a simple model of it.

use std::collections::HashMap;

use fs_err as fs;
use proptest::prelude::*;

use super::View;
use super::tests::{files, uri, view};

/// What a model test does with one of [`PRONE`].
#[derive(Debug, Clone)]
enum Step {
    Place(usize, u16),
    Remove(usize),
    Reopen,
}

/// URIs whose paths collide.
const PRONE: [&str; 16] = [
    "https://h",
    "https://h/",
    "https://h/a",
    "https://h/A",
    "https://h/a/",
    "https://h/a//",
    "https://h/a?q",
    "https://h/a/b",
    "https://h/A/b",
    "https://h/a/b/c",
    "https://h/a/b/c.txt",
    "https://h/a/b/c.txt/d",
    "https://h/1",
    "https://h/1/2",
    "http://h/a",
    "http://h/a/b",
];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..PRONE.len(), any::<u16>()).prop_map(|(n, content)| Step::Place(n, content)),
        4 => (0..PRONE.len()).prop_map(Step::Remove),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn whatever_the_order_each_resource_has_its_own_file_and_no_other_is_left(
        steps in steps(),
        tells_case_apart: bool,
    ) {
        let (directory, _) = view();
        let mut view = View::new(directory.path());
        if !tells_case_apart {
            fs::create_dir_all(directory.path().join(".thresher/TMP")).unwrap();
        }
        let mut model = HashMap::new();
        for step in steps {
            match step {
                Step::Place(n, content) => {
                    view.0.place(&uri(PRONE[n]), &content.to_be_bytes()).unwrap();
                    model.insert(n, content);
                }
                Step::Remove(n) => {
                    prop_assert_eq!(view.0.remove(&uri(PRONE[n])).unwrap(), model.remove(&n).is_some());
                }
                Step::Reopen => view = View::new(directory.path()),
            }
        }
        for (n, text) in PRONE.iter().enumerate() {
            let found = view.0.find(&uri(text)).unwrap().map(|file| fs::read(file).unwrap());
            prop_assert_eq!(found, model.get(&n).map(|content| content.to_be_bytes().to_vec()), "{}", text);
        }
        let mut files = files(directory.path());
        prop_assert_eq!(files.len(), model.len(), "{:?}", &files);
        if !tells_case_apart {
            files = files.iter().map(|file| file.to_lowercase()).collect();
            files.sort();
            files.dedup();
            prop_assert_eq!(files.len(), model.len());
        }
    }
}
