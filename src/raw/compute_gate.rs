//! Keeps those who read or change what running computations change apart from them, process-wide.
//!
//! Backends keep some plain numbers per device (the fusion counters) that every context's computation touches. A
//! computation holds the gate shared; who touches those numbers from outside holds it alone.

use std::cell::Cell;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::logging;

static GATE: RwLock<()> = RwLock::new(());

thread_local! {
    static COMPUTING: Cell<u32> = const { Cell::new(0) };
}

/// Held while a computation runs.
pub(crate) struct Computing {
    /// `None` inside a callback of a computation on this thread, which holds the gate already.
    _shared: Option<RwLockReadGuard<'static, ()>>,
}

/// Enters a computation.
pub(crate) fn computing() -> Computing {
    let depth = COMPUTING.get();
    let shared = (depth == 0).then(|| GATE.read().unwrap_or_else(PoisonError::into_inner));
    COMPUTING.set(depth + 1);
    Computing { _shared: shared }
}

impl Drop for Computing {
    fn drop(&mut self) {
        COMPUTING.set(COMPUTING.get().saturating_sub(1));
    }
}

/// Waits until no computation runs and keeps others from starting. `None` inside a computation's callback on this
/// thread and inside a log sink, which may run on a thread that the computation waits for: there waiting would never end.
pub(crate) fn alone() -> Option<RwLockWriteGuard<'static, ()>> {
    (COMPUTING.get() == 0 && !logging::in_sink()).then(|| GATE.write().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_computation_excludes_the_lone_holder_and_nests() {
        let outer = computing();
        let inner = computing();
        assert!(alone().is_none());
        drop((inner, outer));
        assert!(alone().is_some());
    }
}
