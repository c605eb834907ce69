//! What an object asks the module to do.

use crate::exports::popcell::interpreter::operations::{Error, InvalidObject};

const KEY: &str = "\"tests.popcell.dev/behaviour\":\"";

/// Does what the object asks for; returns what is left to do, which is a lie or nothing.
pub(crate) fn act(object: &[u8]) -> Result<&str, Error> {
    let behaviour = asked(object);
    if let Some(rounds) = behaviour.strip_prefix("spin-") {
        spin(rounds.parse().unwrap_or(0));
    }
    match behaviour {
        "loop" => loop {
            std::hint::black_box(());
        },
        "trap" => give_up(object),
        "allocate" => allocate(),
        "recurse" => std::process::exit(recurse(object.len() as u64) as i32),
        "recurse-large" => std::process::exit(recurse_with_large_frames(object.len()) as i32),
        "fill" => {
            fill();
            Ok("")
        }
        "fill-look" => {
            fill();
            Err(Error::Failed(format!("{} bytes of its own", look())))
        }
        "look" => Err(Error::Failed(format!("{} bytes of another call", look()))),
        "" if contains(object, "\"kind\":\"Crash\"") => give_up(object),
        "invalid" => Err(Error::InvalidObject(InvalidObject {
            path: "/spec/replicas".into(),
            message: "expected an integer, found \"two\"".into(),
        })),
        "undecided" => Err(Error::Undecided("the image cannot be pulled".into())),
        "unsupported" => Err(Error::Unsupported),
        "failed" => Err(Error::Failed("no such size".into())),
        "failed-at-length" => Err(Error::Failed("\u{1f980}\n".repeat(1000))),
        behaviour => Ok(behaviour),
    }
}

fn contains(object: &[u8], part: &str) -> bool {
    object.windows(part.len()).any(|window| window == part.as_bytes())
}

fn asked(object: &[u8]) -> &str {
    let text = std::str::from_utf8(object).unwrap_or_default();
    match text.find(KEY).and_then(|at| text.get(at + KEY.len()..)) {
        Some(rest) => rest.split('"').next().unwrap_or_default(),
        None => "",
    }
}

#[inline(never)]
fn give_up(object: &[u8]) -> ! {
    panic!("cannot go on with {} bytes", object.len())
}

#[inline(never)]
fn allocate() -> ! {
    let mut all: Vec<Vec<u8>> = Vec::new();
    loop {
        all.push(std::hint::black_box(vec![1; 1 << 20]));
    }
}

#[inline(never)]
fn recurse(depth: u64) -> u64 {
    let deeper = recurse(std::hint::black_box(depth + 1));
    std::hint::black_box(deeper) + 1
}

/// Large locals lie on the stack in linear memory, which ends before the native one does.
#[inline(never)]
fn recurse_with_large_frames(depth: usize) -> usize {
    let mut locals = [0u8; 4096];
    locals[depth % 4096] = 1;
    let locals = std::hint::black_box(locals);
    recurse_with_large_frames(depth + 1) + usize::from(locals[7])
}

fn spin(rounds: u64) {
    for round in 0..rounds {
        std::hint::black_box(round);
    }
}

/// What a call leaves everywhere in its memory, for [`look`] to find. No code and no data has a run of it.
const SECRET: u8 = 0xc7;
/// Bytes in a row that are no accident.
const RUN: usize = 16;

/// Writes the secret over pages of the heap near and far, and over the unused part of the stack.
#[inline(never)]
fn fill() {
    let mut pages = Vec::new();
    for size in [1 << 10, 64 << 10, 1 << 20, 8 << 20] {
        pages.push(std::hint::black_box(vec![SECRET; size]));
    }
    fill_stack(60);
    std::mem::forget(pages);
}

#[inline(never)]
fn fill_stack(frames: usize) -> u8 {
    let locals = std::hint::black_box([SECRET; 4096]);
    if frames == 0 {
        return locals[7];
    }
    fill_stack(frames - 1) ^ locals[frames % 4096]
}

/// Grows the memory as [`fill`] did and counts the bytes of the secret in all of it.
#[inline(never)]
fn look() -> usize {
    let pages = core::arch::wasm32::memory_size(0);
    let missing = (32 << 20) / (64 << 10) - pages.min(512);
    core::arch::wasm32::memory_grow(0, missing);
    let end = core::arch::wasm32::memory_size(0) * (64 << 10);
    let (mut found, mut run) = (0, 0);
    // From the second page on: nothing lies at the null pointer.
    for address in 1024..end {
        // SAFETY: the address is in linear memory, every byte of which may be read.
        let byte = unsafe { std::ptr::read_volatile(address as *const u8) };
        run = if byte == SECRET { run + 1 } else { 0 };
        found += usize::from(run >= RUN);
    }
    found
}
