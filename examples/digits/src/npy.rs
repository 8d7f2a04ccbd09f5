//! Just enough of NumPy's `.npy` format for the files this example ships.

/// The elements' bytes of an `.npy` file whose element type is `descr` (as `<f4` or `|u1`).
pub fn data<'a>(file: &'a [u8], descr: &str) -> Result<&'a [u8], String> {
    let header_len = match file {
        [0x93, b'N', b'U', b'M', b'P', b'Y', 1, _, low, high, ..] => usize::from(u16::from_le_bytes([*low, *high])),
        _ => return Err("not an .npy file of version 1".into()),
    };
    let (header, data) = file[10..].split_at_checked(header_len).ok_or("the .npy header is cut short")?;
    let header = std::str::from_utf8(header).map_err(|e| e.to_string())?;
    if !header.contains(&format!("'descr': '{descr}'")) {
        return Err(format!("expected elements of type {descr}, the header says {}", header.trim()));
    }
    Ok(data)
}

/// The elements of a float file.
pub fn f32s(file: &[u8]) -> Result<Vec<f32>, String> {
    Ok(data(file, "<f4")?.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
}
