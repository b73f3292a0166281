//! Behaviours: the differences between kernel versions, as named values that can be printed, compared and switched one
//! by one.

use crate::versions::{Setting, Switched, version};

/// One way in which a kernel may behave, as a changelog would describe it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Variant {
    /// The name in an experiment file.
    pub name: &'static str,
    /// The first version that has it.
    pub since: &'static str,
    /// The versions that have it again, after another variant had taken its place.
    pub again: &'static [&'static str],
    /// The commit that introduced it, 12 digits; empty if it predates git or could not be confirmed.
    pub commit: &'static str,
    pub summary: &'static str,
}

impl Variant {
    /// The releases of mainline that it came with. Late releases of a long-term branch (`v5.4.y`) are none.
    pub fn releases(&self) -> impl Iterator<Item = (u32, u32)> {
        std::iter::once(&self.since)
            .chain(self.again)
            .filter(|name| !name.ends_with(".y"))
            .filter_map(|name| version(name))
    }
}

/// Declares a behaviour: an enum whose variants carry name, first version, commit and summary. `again "v5.7",` before the
/// commit names a version that returns to the variant.
#[macro_export]
macro_rules! behaviour {
    (
        $(#[doc = $doc:literal])*
        pub enum $type:ident = $key:literal {
            $( $(#[$vdoc:meta])* $variant:ident = $name:literal, since $since:literal, $(again $again:literal,)* commit $commit:literal,
                $summary:literal; )+
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $type {
            $( $(#[$vdoc])* #[doc = $summary] #[doc = concat!("(", $since, $(", again ", $again,)* " ", $commit, ")")] $variant, )+
        }

        impl $type {
            /// The key in an experiment file that switches this behaviour alone.
            pub const KEY: &'static str = $key;
            pub const VARIANTS: &'static [$crate::behaviour::Variant] = &[
                $( $crate::behaviour::Variant {
                    name: $name, since: $since, again: &[ $($again),* ], commit: $commit, summary: $summary,
                }, )+
            ];
            const ALL: &'static [$type] = &[ $( $type::$variant, )+ ];

            pub fn variant(self) -> &'static $crate::behaviour::Variant {
                &Self::VARIANTS[self as usize]
            }

            pub fn from_name(name: &str) -> Option<$type> {
                Self::VARIANTS.iter().position(|v| v.name == name).map(|i| Self::ALL[i])
            }

            /// This behaviour as a row of a kernel's listing.
            pub fn setting(self) -> $crate::versions::Setting {
                $crate::versions::Setting {
                    key: Self::KEY,
                    doc: concat!($($doc, "\n"),*),
                    value: self.variant(),
                    choices: Self::VARIANTS,
                }
            }

            /// Switches to the variant of that name.
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

/// Behaviours that belong together: those of one room, or of a whole kernel.
pub trait Rules {
    /// Every behaviour, as this kernel has it.
    fn settings(&self) -> Vec<Setting>;

    /// Switches one behaviour alone.
    fn set(&mut self, key: &str, value: &str) -> Switched;
}

/// Implements [`Rules`] for a structure whose fields are behaviours, those after a semicolon excepted. A field that is
/// missing here does not compile.
#[macro_export]
macro_rules! rules {
    ($rules:ident { $( $field:ident ),+ $(,)? $( ; $( $other:ident ),+ $(,)? )? }) => {
        impl $crate::behaviour::Rules for $rules {
            fn settings(&self) -> Vec<$crate::versions::Setting> {
                let $rules { $( $field, )+ $( $( $other: _, )+ )? } = self;
                vec![ $( $field.setting() ),+ ]
            }

            fn set(&mut self, key: &str, value: &str) -> $crate::versions::Switched {
                $( if self.$field.setting().key == key {
                    return self.$field.switch(value);
                } )+
                $crate::versions::Switched::UnknownKey
            }
        }
    };
}
