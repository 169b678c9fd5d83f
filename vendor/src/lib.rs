//! Never compiled: cargo wants a target in a manifest that pins a dependency.
