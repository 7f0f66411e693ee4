//! Parsing of sizes as the user writes them: a number, or a range.
use crate::tensor::Size;

/// Whether the name of a `--dim` option stands for the dimensions that no other option names: `?` for all, `?[1]` for those at one position.
/// Such an option need not match anything.
pub fn is_default_binding(name: &str) -> bool {
    name.starts_with('?')
}

/// Size or range of sizes that the user gives for an unknown dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binding {
    /// A fixed size.
    Size(u64),
    /// A dynamic size with a range.
    Bound(DimBound),
}

/// Range of a dynamic size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DimBound {
    /// Name of the size; dimensions with the same name have the same size. `None` names the size after the dimension.
    pub name: Option<String>,
    /// Smallest size.
    pub least: u64,
    /// Largest size.
    pub most: u64,
}

/// Turns any name into a valid name of a size: characters other than ASCII letters, digits and `_` become `_`, and trailing `_` are
/// dropped.
pub fn sanitize_size_name(name: &str) -> String {
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    name.trim_end_matches('_').to_string()
}

impl Binding {
    /// Binding of dimension `place` by the user's option `name`. A range without a name gets one, so that all dimensions at the same position
    /// that the option matches have the same size.
    pub fn for_axis(&self, name: &str, place: usize) -> Binding {
        let Binding::Bound(bound @ DimBound { name: None, .. }) = self else { return self.clone() };
        let is_of_all = name.is_empty() || is_default_binding(name);
        let own = sanitize_size_name(if is_of_all { "n" } else { name });
        let is_of_one = !is_of_all && name.contains('[');
        let own = if place == 0 || is_of_one { own } else { format!("{own}_{place}") };
        Binding::Bound(DimBound { name: Some(own), ..bound.clone() })
    }

    /// Parses `7`, `<=64`, `n<=64`, `1..64` or `n=1..64`; `None` for any other text. The default lower bound is 1.
    pub fn parse(text: &str) -> Option<Binding> {
        let text = text.trim();
        if let Ok(size) = text.parse() {
            return Some(Binding::Size(size));
        }
        let named = |name: &str| {
            let name = name.trim();
            let sound = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                && !name.starts_with(|c: char| c.is_ascii_digit());
            sound.then(|| Some(name.to_string()).filter(|n| !n.is_empty()))
        };
        let (name, least, most) = match text.split_once("<=") {
            Some((name, most)) => (named(name)?, 1, most.trim().parse().ok()?),
            None => {
                let (name, range) = text.rsplit_once('=').unwrap_or(("", text));
                let (least, most) = range.split_once("..")?;
                (named(name)?, least.trim().parse().ok()?, most.trim().parse().ok()?)
            }
        };
        (least <= most && most >= 1).then_some(Binding::Bound(DimBound { name, least, most }))
    }
}

/// Dynamic sizes of a function, with unique names.
#[derive(Debug, Default)]
pub struct VaryingSizes {
    /// Sizes, in the order of their first use.
    pub sizes: Vec<Size>,
}

impl VaryingSizes {
    /// Index of the size with this bound, which is added if it is new; `name` is its name if the bound has none.
    ///
    /// # Errors
    /// A message for two different bounds of the same name.
    pub fn find_or_add_size(&mut self, bound: &DimBound, name: &str) -> Result<usize, String> {
        let name = bound.name.as_deref().unwrap_or(name);
        let size =
            Size { name: name.to_string(), least: bound.least, most: bound.most, is_result: false, is_check: false };
        match self.sizes.iter().position(|s| s.name == size.name) {
            Some(known) if self.sizes[known] == size => Ok(known),
            Some(known) => {
                let other = &self.sizes[known];
                Err(format!("`{name}` is {} to {} and {} to {}", other.least, other.most, size.least, size.most))
            }
            None => {
                self.sizes.push(size);
                Ok(self.sizes.len() - 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_bounds_are_read() {
        let bound = |name: Option<&str>, least, most| {
            Some(Binding::Bound(DimBound { name: name.map(str::to_string), least, most }))
        };
        for (text, read) in [
            ("7", Some(Binding::Size(7))),
            ("n<=64", bound(Some("n"), 1, 64)),
            ("<=64", bound(None, 1, 64)),
            ("0..3", bound(None, 0, 3)),
            ("n=2..64", bound(Some("n"), 2, 64)),
            ("?", None),
            ("n", None),
            ("a b<=3", None),
            ("5..2", None),
            ("n<=0", None),
            ("-1", None),
        ] {
            assert_eq!(Binding::parse(text), read, "{text}");
        }
    }
}
