//! Gives a core module the memory of an ordinary call when it is instantiated.
//!
//! Every call gets a fresh instance. The allocator of Rust's std takes all of its memory from `memory.grow`, so each call
//! would have the host make a piece of memory accessible and take it back afterwards: two system calls, a quarter of a
//! short call, and on several cores each of them interrupts the others.
//!
//! Here the memory starts larger, and `memory.grow` first hands out what is there. The module cannot tell the difference:
//! it sees the sizes that it would have seen, and pages that it did not touch yet are zero either way and cost nothing.

use std::convert::Infallible;

use wasm_encoder::reencode::{Error, Reencode, utils};
use wasm_encoder::{
    CodeSection, ConstExpr, Function, FunctionSection, GlobalSection, GlobalType, Instruction, MemoryType, Module,
    TypeSection, ValType,
};
use wasmparser::{
    CodeSectionReader, FunctionSectionReader, GlobalSectionReader, Operator, Parser, Payload, TypeSectionReader,
};

use crate::BuildError;
use crate::componentize::refused;

/// Pages of 64 KiB that are there from the start. Objects of Kubernetes have a few KiB, and what a call allocates is a
/// small multiple of that.
const PAGES: u64 = 4;

/// The module with its heap. One that never grows its memory, and one whose memory is not of the common kind (shared, of
/// 64 bits, or with a maximum that leaves no room), stays as it is.
pub(crate) fn provide(core: &[u8]) -> Result<Vec<u8>, BuildError> {
    let Some(mut heap) = Heap::of(core)? else {
        return Ok(core.to_vec());
    };
    let mut module = Module::new();
    heap.parse_core_module(&mut module, Parser::new(0), core)
        .map_err(refused)?;
    Ok(module.finish())
}

/// Where the parts that are added will be.
struct Heap {
    /// Type of the function that stands for `memory.grow`.
    ty: u32,
    /// That function.
    grow: u32,
    /// The global with the number of pages that the module knows of.
    known: u32,
    /// Their number at the start.
    pages: u32,
}

impl Heap {
    fn of(core: &[u8]) -> Result<Option<Self>, BuildError> {
        let (mut ty, mut grow, mut known) = (0, 0, 0);
        let (mut pages, mut grows) = (None, false);
        for payload in Parser::new(0).parse_all(core) {
            match payload.map_err(refused)? {
                Payload::TypeSection(section) => {
                    for group in section {
                        ty += u32::try_from(group.map_err(refused)?.types().len()).map_err(refused)?;
                    }
                }
                // Imports take indices too; a module with imports is refused elsewhere.
                Payload::ImportSection(_) => return Ok(None),
                Payload::FunctionSection(section) => grow = section.count(),
                Payload::GlobalSection(section) => known = section.count(),
                Payload::MemorySection(section) => {
                    for memory in section {
                        let memory = memory.map_err(refused)?;
                        let room = memory.maximum.is_none_or(|most| most >= memory.initial + PAGES);
                        let common = !memory.shared && !memory.memory64 && memory.page_size_log2.is_none();
                        if pages.is_some() || !common || !room {
                            return Ok(None);
                        }
                        pages = Some(u32::try_from(memory.initial).map_err(refused)?);
                    }
                }
                Payload::CodeSectionEntry(body) if !grows => {
                    for operator in body.get_operators_reader().map_err(refused)? {
                        grows |= matches!(operator.map_err(refused)?, Operator::MemoryGrow { .. });
                    }
                }
                _ => {}
            }
        }
        Ok(pages
            .filter(|_| grows && known > 0)
            .map(|pages| Self { ty, grow, known, pages }))
    }

    fn grow_body(&self) -> Function {
        const MORE: u32 = 0;
        const ROOM: u32 = 1;
        let mut body = Function::new([(1, ValType::I32)]);
        let mut code = body.instructions();
        // room = what is there beyond what the module knows of
        code.memory_size(0).global_get(self.known).i32_sub().local_set(ROOM);
        // if more > room, and growing by the rest fails: -1
        code.local_get(MORE).local_get(ROOM).i32_gt_u();
        code.if_(wasm_encoder::BlockType::Empty);
        code.local_get(MORE).local_get(ROOM).i32_sub().memory_grow(0);
        code.i32_const(-1).i32_eq();
        code.if_(wasm_encoder::BlockType::Empty);
        code.i32_const(-1).return_();
        code.end().end();
        // The old number is the result.
        code.global_get(self.known);
        code.global_get(self.known)
            .local_get(MORE)
            .i32_add()
            .global_set(self.known);
        code.end();
        body
    }
}

impl Reencode for Heap {
    type Error = Infallible;

    fn memory_type(&mut self, memory: wasmparser::MemoryType) -> Result<MemoryType, Error> {
        let mut memory = utils::memory_type(self, memory);
        memory.minimum += PAGES;
        Ok(memory)
    }

    fn parse_type_section(&mut self, types: &mut TypeSection, section: TypeSectionReader<'_>) -> Result<(), Error> {
        utils::parse_type_section(self, types, section)?;
        types.ty().function([ValType::I32], [ValType::I32]);
        Ok(())
    }

    fn parse_function_section(
        &mut self,
        functions: &mut FunctionSection,
        section: FunctionSectionReader<'_>,
    ) -> Result<(), Error> {
        utils::parse_function_section(self, functions, section)?;
        functions.function(self.ty);
        Ok(())
    }

    fn parse_global_section(
        &mut self,
        globals: &mut GlobalSection,
        section: GlobalSectionReader<'_>,
    ) -> Result<(), Error> {
        utils::parse_global_section(self, globals, section)?;
        let known = GlobalType {
            val_type: ValType::I32,
            mutable: true,
            shared: false,
        };
        globals.global(known, &ConstExpr::i32_const(self.pages.cast_signed()));
        Ok(())
    }

    fn parse_code_section(&mut self, code: &mut CodeSection, section: CodeSectionReader<'_>) -> Result<(), Error> {
        utils::parse_code_section(self, code, section)?;
        code.function(&self.grow_body());
        Ok(())
    }

    fn instruction<'a>(&mut self, operator: Operator<'a>) -> Result<Instruction<'a>, Error> {
        match operator {
            Operator::MemoryGrow { .. } => Ok(Instruction::Call(self.grow)),
            Operator::MemorySize { .. } => Ok(Instruction::GlobalGet(self.known)),
            operator => utils::instruction(self, operator),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wasmtime::{Engine, Instance, Store};

    use super::*;

    const MODULE: &str = r#"(module
        (memory (export "memory") 3 40)
        (global (mut i32) (i32.const 7))
        (data (i32.const 0) "x")
        (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
        (func (export "size") (result i32) (memory.size))
        (func (export "global") (result i32) (global.get 0)))"#;

    /// Pages that the host sees at the start, and what the module sees of `memory.grow` and `memory.size` after each step.
    fn sizes(core: &[u8], steps: &[i32]) -> (u64, Vec<i32>, Vec<i32>) {
        let engine = Engine::default();
        let module = wasmtime::Module::new(&engine, core).unwrap();
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        let grow = instance.get_typed_func::<i32, i32>(&mut store, "grow").unwrap();
        let size = instance.get_typed_func::<(), i32>(&mut store, "size").unwrap();
        let global = instance.get_typed_func::<(), i32>(&mut store, "global").unwrap();
        let memory = instance.get_memory(&mut store, "memory").unwrap();
        let before = memory.size(&store);
        let (mut grown, mut seen) = (Vec::new(), vec![size.call(&mut store, ()).unwrap()]);
        for &step in steps {
            grown.push(grow.call(&mut store, step).unwrap());
            let pages = size.call(&mut store, ()).unwrap();
            assert!(u64::try_from(pages).unwrap() <= memory.size(&store));
            seen.push(pages);
        }
        assert_eq!(global.call(&mut store, ()).unwrap(), 7);
        assert!(memory.data(&store).starts_with(b"x"));
        (before, grown, seen)
    }

    #[test]
    fn the_heap_is_there_from_the_start() {
        let core = wat::parse_str(MODULE).unwrap();
        let (before, _, seen) = sizes(&provide(&core).unwrap(), &[]);
        assert_eq!((before, seen), (3 + PAGES, vec![3]));
    }

    #[test]
    fn other_modules_stay_as_they_are() {
        for wat in [
            "(module (memory 1) (func (result i32) (memory.size)))",
            "(module (memory 1 2) (global i32 (i32.const 0)) (func (drop (memory.grow (i32.const 1)))))",
            "(module (memory i64 1) (global i32 (i32.const 0)) (func (drop (memory.grow (i64.const 1)))))",
            r#"(module (import "a" "b" (func)) (memory 1) (global i32 (i32.const 0)) (func (drop (memory.grow (i32.const 1)))))"#,
        ] {
            let core = wat::parse_str(wat).unwrap();
            assert_eq!(provide(&core).unwrap(), core, "{wat}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn the_module_sees_no_difference(steps in prop::collection::vec(prop_oneof![0..12_i32, Just(-1), 0..=i32::MAX], 0..12)) {
            let core = wat::parse_str(MODULE).unwrap();
            let (_, grown, seen) = sizes(&core, &steps);
            let (_, with_heap, seen_with_heap) = sizes(&provide(&core).unwrap(), &steps);
            prop_assert_eq!(grown, with_heap);
            prop_assert_eq!(seen, seen_with_heap);
        }
    }
}
