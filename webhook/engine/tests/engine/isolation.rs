//! What one call leaves in its memory, no other call reads, whichever way memory is cleared between them.

use popcell_engine::{Cause, Engine, Settings};
use popcell_protocol::{Answer, Operation};

use crate::fixture::{ask, settings, wasm};

#[test]
fn an_instance_never_sees_anothers_bytes() {
    for scan in [false, true] {
        // One instance at a time, and as few places for one as the settings allow: the next call gets the same memory.
        let settings = Settings { slots: 1, ..settings() };
        let engine = Engine::with_scan(&settings, scan).unwrap();
        assert!(scan || !engine.scans_memory());
        let module = engine.load("misbehaving.wasm", &wasm("misbehaving")).unwrap();
        for round in 0..3 {
            let filled = ask(&module, Operation::InterpretHealth, "fill");
            assert!(matches!(filled, Ok(Answer::Health(true))), "{filled:?}");
            let Cause::Failed(found) = ask(&module, Operation::InterpretHealth, "look").unwrap_err().cause else {
                panic!("the fixture did not look")
            };
            assert_eq!(found, "0 bytes of another call", "scan {scan}, round {round}");
        }
    }
}

#[test]
fn the_fixture_finds_what_it_left_itself() {
    let module = crate::fixture::module(&settings());
    let cause = ask(&module, Operation::InterpretHealth, "fill-look").unwrap_err().cause;
    let Cause::Failed(found) = cause else {
        panic!("{cause:?}")
    };
    let bytes: usize = found.split(' ').next().unwrap().parse().unwrap();
    assert!(bytes > 9 << 20, "{found}");
}
