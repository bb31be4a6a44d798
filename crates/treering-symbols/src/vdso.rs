//! The code that the kernel maps into every process.

use std::io::{Read as _, Seek as _, SeekFrom};

/// The vDSO as it is mapped into this process; the kernel maps the same into all of them.
pub(crate) fn image() -> Option<Vec<u8>> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    let bounds = [start, end].map(|text| u64::from_str_radix(text, 16));
    let [Ok(start), Ok(end)] = bounds else { return None };
    let mut memory = std::fs::File::open("/proc/self/mem").ok()?;
    memory.seek(SeekFrom::Start(start)).ok()?;
    let mut image = Vec::new();
    memory.take(end.checked_sub(start)?).read_to_end(&mut image).ok()?;
    Some(image)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_image_is_an_object_file_where_the_kernel_maps_one() {
        let Some(image) = super::image() else { return };
        assert!(image.starts_with(b"\x7fELF"));
    }
}
