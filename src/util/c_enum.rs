//! Hand-written enumerations that mirror upstream's: never made from an unknown number.

/// Declares an enumeration with conversions to and from upstream's constants.
macro_rules! c_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident: $c_type:ty, $what:literal {
            $($(#[$variant_meta:meta])* $variant:ident = $constant:expr,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)+
        }

        #[allow(dead_code)]
        impl $name {
            /// Upstream's constant.
            pub(crate) fn to_c(self) -> $c_type {
                match self {
                    $($name::$variant => $constant,)+
                }
            }

            /// The variant for upstream's constant.
            pub(crate) fn from_c(value: $c_type) -> $crate::error::Result<$name> {
                $(if value == $constant {
                    return Ok($name::$variant);
                })+
                Err($crate::error::Error::UnknownEnumValue { what: $what, value: i64::from(value) })
            }
        }
    };
}
pub(crate) use c_enum;
