//! Environment variables, as a value that tests can make.

use std::collections::BTreeMap;

/// Environment variables. Those whose name or value is not Unicode are left out.
#[derive(Clone, Default)]
pub struct Vars(BTreeMap<String, String>);

impl Vars {
    /// The variables of this process.
    pub fn of_process() -> Self {
        let unicode = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Self(unicode.collect())
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A copy with this variable added or replaced.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.0.insert(name.to_owned(), value.to_owned());
        self
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The variables whose names start with `prefix`, each with the rest of its name.
    pub fn under<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str, &'a str)> {
        let all = self.0.iter();
        all.filter_map(move |(name, value)| Some((name.as_str(), name.strip_prefix(prefix)?, value.as_str())))
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Vars {
    fn from(vars: [(&str, &str); N]) -> Self {
        Self(vars.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}

impl std::fmt::Debug for Vars {
    // Values may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
