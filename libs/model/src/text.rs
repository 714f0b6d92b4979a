//! Serializes identifiers as text.

/// Serializes an identifier as its text. Serde's `into = "String"` would first copy it, millions of times.
macro_rules! serialize {
    ($name:ty) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

pub(crate) use serialize;
