//! Forms with their files, read to the end.

use bytes::Bytes;
use gustnado_http::multipart::{MultipartEvent, PartHead};

use super::multipart::Part;
use super::spill::Spill;
use super::upload::{Upload, UploadContent};
use super::{FormError, FormLimits, decoder};
use crate::body::{decoded, encoding_of};
use crate::request::Request;

/// All fields of a `multipart/form-data` form: values, and files.
///
/// A part with a file name is a file. A part with an empty file name and no bytes is a file field
/// in which none was chosen, and is left out.
#[derive(Debug, Default)]
pub struct FormData {
    values: Vec<(String, String)>,
    files: Vec<Upload>,
}

impl FormData {
    /// Returns the first value of a name.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.values().find(|pair| pair.0 == name).map(|pair| pair.1)
    }

    /// Returns all values in order, with their names.
    pub fn values(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the first file of a name.
    pub fn file(&self, name: &str) -> Option<&Upload> {
        self.files.iter().find(|file| file.name() == name)
    }

    /// Returns all files, in order.
    pub fn files(&self) -> &[Upload] {
        &self.files
    }

    /// Returns all files, to be kept.
    pub fn into_files(self) -> Vec<Upload> {
        self.files
    }

    fn add_file(&mut self, file: Upload) {
        if file.length() > 0 || !file.file_name().is_empty() {
            self.files.push(file);
        }
    }
}

/// Remainder of a form's limits.
struct Room<'l> {
    limits: &'l FormLimits,
    value_bytes: usize,
    memory_bytes: usize,
    disk_bytes: u64,
}

impl<'l> Room<'l> {
    fn new(limits: &'l FormLimits) -> Self {
        Self {
            limits,
            value_bytes: limits.value_bytes_max,
            memory_bytes: limits.memory_bytes_max,
            disk_bytes: limits.disk_bytes_max,
        }
    }

    fn take_value(&mut self, bytes: usize) -> Result<(), FormError> {
        let limit_bytes = self.limits.value_bytes_max;
        let too_large = FormError::ValueTooLarge { limit_bytes };
        self.value_bytes = self.value_bytes.checked_sub(bytes).ok_or(too_large)?;
        Ok(())
    }

    fn check_file(&self, bytes: u64) -> Result<(), FormError> {
        let limit_bytes = self.limits.file_bytes_max;
        if bytes > limit_bytes { Err(FormError::FileTooLarge { limit_bytes }) } else { Ok(()) }
    }

    fn take_disk(&mut self, bytes: usize) -> Result<(), FormError> {
        let limit_bytes = self.limits.disk_bytes_max;
        let too_much = FormError::TooMuchForDisk { limit_bytes };
        self.disk_bytes = self.disk_bytes.checked_sub(bytes as u64).ok_or(too_much)?;
        Ok(())
    }
}

/// Reads a file to its end, into memory while the limits allow it, then to the disk.
async fn read_file(mut part: Part<'_>, room: &mut Room<'_>) -> Result<Upload, FormError> {
    let (mut gathered, mut length, mut spill) = (Vec::new(), 0_u64, None::<Spill>);
    let kept = part.form.kept();
    while let Some(piece) = part.next().await.transpose()? {
        let bytes = piece.len();
        length += bytes as u64;
        room.check_file(length)?;
        if let Some(spill) = &mut spill {
            room.take_disk(bytes)?;
            spill.push(piece).await?;
            part.form.set_kept(kept + spill.gathered());
            continue;
        }
        gathered.push(piece);
        part.form.set_kept(part.form.kept() + bytes);
        if let Some(left) = room.memory_bytes.checked_sub(bytes) {
            room.memory_bytes = left;
            continue;
        }
        let here: usize = gathered.iter().map(Bytes::len).sum();
        room.memory_bytes += here - bytes;
        room.take_disk(here)?;
        let folder = room.limits.folder.as_deref();
        spill = Some(Spill::start(folder, std::mem::take(&mut gathered)).await?);
    }
    let content = match spill {
        Some(spill) => {
            part.form.set_kept(kept);
            UploadContent::Disk(spill.finish().await?)
        }
        // A copy: a short piece might keep a long buffer alive.
        None => UploadContent::Memory(gathered.concat().into()),
    };
    Ok(Upload { head: part.head, length, content })
}

/// Reads a form whose body is in memory. Its files are slices of the body.
fn read_whole(request: &Request, limits: &FormLimits) -> Result<FormData, FormError> {
    let mut decoder = decoder(request, limits)?;
    let mut rest = request.whole_body()?.clone();
    let (mut form, mut room) = (FormData::default(), Room::new(limits));
    let mut part: Option<(PartHead, Bytes)> = None;
    loop {
        let used = match decoder.decode(&rest)? {
            MultipartEvent::NeedMore => return Err(FormError::Truncated),
            MultipartEvent::End => return Ok(form),
            MultipartEvent::Skip(len) => len,
            MultipartEvent::Head(len, head) => {
                part = Some((head, Bytes::new()));
                len
            }
            // A part of a whole body is one run of bytes.
            MultipartEvent::Data(len) => {
                if let Some((_, data)) = &mut part {
                    *data = rest.slice(..len);
                }
                len
            }
            MultipartEvent::PartEnd(len) => {
                if let Some((head, data)) = part.take() {
                    add_whole(&mut form, &mut room, head, data)?;
                }
                len
            }
        };
        rest = rest.slice(used..);
    }
}

fn add_whole(
    form: &mut FormData,
    room: &mut Room<'_>,
    head: PartHead,
    data: Bytes,
) -> Result<(), FormError> {
    if head.file_name().is_some() {
        let length = data.len() as u64;
        room.check_file(length)?;
        form.add_file(Upload { head, length, content: UploadContent::Memory(data) });
        return Ok(());
    }
    room.take_value(head.name().len() + data.len())?;
    let encoding = encoding_of(head.field("content-type"))?;
    form.values.push((head.name().to_owned(), decoded(encoding, &data)?.into_owned()));
    Ok(())
}

/// `multipart/form-data`, all of it.
impl Request {
    /// Returns a form with its files, in inline and blocking handlers, within the default
    /// [`FormLimits`]. Everything stays in memory, as the body does: for large files use a task
    /// handler and [`Request::read_form_data`].
    ///
    /// # Errors
    /// [`FormError`]: 415 where the body is no such form, 400 where it is malformed, 413 past a
    /// limit.
    pub fn form_data(&self) -> Result<FormData, FormError> {
        read_whole(self, &FormLimits::default())
    }

    /// Reads a form with its files, in task handlers. Large files go to temporary files. These are
    /// written on the thread pool while the form arrives, and deleted with the [`FormData`], also
    /// if the client goes or the handler panics. If the process is killed they stay: `upload-…` in
    /// [`FormLimits::folder`].
    ///
    /// # Errors
    /// [`FormError`]: 415 where the body is no such form, 400 where it is malformed, 413 past a
    /// limit; or the body did not come, or the disk failed.
    pub async fn read_form_data(&mut self, limits: &FormLimits) -> Result<FormData, FormError> {
        let mut parts = self.multipart(limits)?;
        let (mut form, mut room) = (FormData::default(), Room::new(limits));
        while let Some(part) = parts.next().await {
            let mut part = part?;
            if part.file_name().is_some() {
                form.add_file(read_file(part, &mut room).await?);
                continue;
            }
            let name = part.name().to_owned();
            room.take_value(name.len())?;
            let value = match part.text(room.value_bytes).await {
                Err(FormError::ValueTooLarge { .. }) => {
                    let limit_bytes = limits.value_bytes_max;
                    return Err(FormError::ValueTooLarge { limit_bytes });
                }
                value => value?,
            };
            parts.set_kept(parts.kept() + name.len() + value.len());
            // In another charset it may have become longer, so this counts slightly too much.
            room.value_bytes = room.value_bytes.saturating_sub(value.len());
            form.values.push((name, value));
        }
        Ok(form)
    }
}
