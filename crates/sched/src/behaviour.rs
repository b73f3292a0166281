//! Behaviours: what differs between kernel versions, as named values that can be printed, compared and switched alone.

/// One way a kernel may behave: what a changelog says about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Variant {
    /// What an experiment file writes.
    pub name: &'static str,
    /// First version that has it.
    pub since: &'static str,
    /// The commit that brought it, 12 digits; empty where it was there before git or could not be confirmed.
    pub commit: &'static str,
    pub summary: &'static str,
}

/// Declares a behaviour: an enum whose variants carry name, first version, commit and summary.
#[macro_export]
macro_rules! behaviour {
    (
        $(#[doc = $doc:literal])*
        pub enum $type:ident = $key:literal {
            $( $(#[$vdoc:meta])* $variant:ident = $name:literal, since $since:literal, commit $commit:literal, $summary:literal; )+
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $type {
            $( $(#[$vdoc])* #[doc = $summary] #[doc = concat!("(", $since, " ", $commit, ")")] $variant, )+
        }

        impl $type {
            /// What an experiment file writes to switch this behaviour alone.
            pub const KEY: &'static str = $key;
            pub const VARIANTS: &'static [$crate::behaviour::Variant] = &[
                $( $crate::behaviour::Variant { name: $name, since: $since, commit: $commit, summary: $summary }, )+
            ];
            const ALL: &'static [$type] = &[ $( $type::$variant, )+ ];

            pub fn variant(self) -> &'static $crate::behaviour::Variant {
                &Self::VARIANTS[self as usize]
            }

            pub fn from_name(name: &str) -> Option<$type> {
                Self::VARIANTS.iter().position(|v| v.name == name).map(|i| Self::ALL[i])
            }

            /// This behaviour as a line of a kernel's listing.
            pub fn setting(self) -> $crate::versions::Setting {
                $crate::versions::Setting {
                    key: Self::KEY,
                    doc: concat!($($doc, "\n"),*),
                    value: self.variant(),
                    choices: Self::VARIANTS,
                }
            }

            /// Becomes the variant of that name.
            pub fn switch(&mut self, name: &str) -> $crate::versions::Switched {
                match Self::from_name(name) {
                    Some(variant) => {
                        *self = variant;
                        $crate::versions::Switched::Done
                    }
                    None => $crate::versions::Switched::UnknownValue(Self::VARIANTS),
                }
            }
        }
    };
}
