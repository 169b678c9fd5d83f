//! Small helpers without a home of their own.

pub(crate) mod c_enum;
pub(crate) mod cstr;
