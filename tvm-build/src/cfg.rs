//! Conditions of `#[cfg(…)]`, as far as cargo tells them to build scripts.

use std::collections::BTreeMap;

/// What is set for the package that is being built.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cfg {
    /// `CARGO_FEATURE_…` and `CARGO_CFG_…` variables. Empty: nothing is known.
    variables: BTreeMap<String, String>,
}

impl Cfg {
    /// From the environment of a build script.
    pub(crate) fn from_cargo() -> Cfg {
        Cfg::new(std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?))))
    }

    pub(crate) fn new(variables: impl Iterator<Item = (String, String)>) -> Cfg {
        let ours = |k: &String| k.starts_with("CARGO_FEATURE_") || k.starts_with("CARGO_CFG_");
        Cfg { variables: variables.filter(|(k, _)| ours(k)).collect() }
    }

    /// Whether what has these attributes may be compiled: no condition on it is known to be false.
    pub(crate) fn allows(&self, attributes: &[syn::Attribute]) -> bool {
        let conditions = attributes.iter().filter(|a| a.path().is_ident("cfg"));
        conditions.filter_map(|a| a.parse_args::<syn::Meta>().ok()).all(|c| self.holds(&c) != Some(false))
    }

    /// Whether a condition holds; `None` where a build script cannot know it (`test`, conditions of the command line).
    fn holds(&self, condition: &syn::Meta) -> Option<bool> {
        match condition {
            syn::Meta::NameValue(n) => {
                let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(value), .. }) = &n.value else { return None };
                self.value(&n.path.get_ident()?.to_string(), &value.value())
            }
            syn::Meta::Path(p) => self.flag(&p.get_ident()?.to_string()),
            syn::Meta::List(l) => {
                type Conditions = syn::punctuated::Punctuated<syn::Meta, syn::Token![,]>;
                let parts = l.parse_args_with(Conditions::parse_terminated).ok()?;
                let parts: Vec<Option<bool>> = parts.iter().map(|p| self.holds(p)).collect();
                let any = |v: bool| parts.contains(&Some(v));
                let all = |v: bool| parts.iter().all(|p| *p == Some(v));
                match (l.path.get_ident()?.to_string().as_str(), parts.as_slice()) {
                    ("not", [one]) => one.map(|b| !b),
                    ("all", _) if any(false) => Some(false),
                    ("all", _) if all(true) => Some(true),
                    ("any", _) if any(true) => Some(true),
                    ("any", _) if all(false) => Some(false),
                    _ => None,
                }
            }
        }
    }

    fn value(&self, key: &str, value: &str) -> Option<bool> {
        if self.variables.is_empty() {
            return None;
        }
        let upper = |s: &str| s.to_uppercase().replace('-', "_");
        if key == "feature" {
            return Some(self.variables.contains_key(&format!("CARGO_FEATURE_{}", upper(value))));
        }
        let all = self.variables.get(&format!("CARGO_CFG_{}", upper(key)))?;
        Some(all.split(',').any(|v| v == value))
    }

    /// `unix`, `windows`: set as empty variables. Others may be set on the command line.
    fn flag(&self, key: &str) -> Option<bool> {
        match key {
            "true" => Some(true),
            "false" => Some(false),
            _ if self.variables.contains_key(&format!("CARGO_CFG_{}", key.to_uppercase())) => Some(true),
            "unix" | "windows" if !self.variables.is_empty() => Some(false),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions() {
        let set =
            [("CARGO_FEATURE_BIG_MODEL", "1"), ("CARGO_CFG_TARGET_OS", "linux"), ("CARGO_CFG_UNIX", ""), ("PATH", "x")];
        let cfg = Cfg::new(set.iter().map(|(k, v)| (k.to_string(), v.to_string())));
        let holds = |text: &str| cfg.holds(&syn::parse_str(text).unwrap());
        for (text, value) in [
            (r#"feature = "big-model""#, Some(true)),
            (r#"feature = "small""#, Some(false)),
            (r#"target_os = "linux""#, Some(true)),
            (r#"not(target_os = "linux")"#, Some(false)),
            ("unix", Some(true)),
            ("windows", Some(false)),
            ("test", None),
            ("not(test)", None),
            (r#"all(test, feature = "small")"#, Some(false)),
            (r#"all(unix, feature = "big-model")"#, Some(true)),
            (r#"any(test, unix)"#, Some(true)),
            (r#"any(windows, feature = "small")"#, Some(false)),
            (r#"custom = "x""#, None),
        ] {
            assert_eq!(holds(text), value, "{text}");
        }
        let item: syn::ItemMod = syn::parse_str(r#"#[cfg(test)] #[cfg(feature = "small")] mod m {}"#).unwrap();
        assert!(!cfg.allows(&item.attrs));
        assert!(Cfg::default().allows(&item.attrs), "nothing is known outside of build scripts");
    }
}
