//! Where the ONNX Runtime library is: given, named by `ORT_DYLIB_PATH`, or inside a Python package.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{EngineError, Error, Result};

/// The library.
pub(super) fn find(given: Option<&Path>) -> Result<PathBuf> {
    // What a user names explicitly is taken or refused, never replaced by something else.
    let named = given
        .map(Path::to_path_buf)
        .or_else(|| env::var_os("ORT_DYLIB_PATH").filter(|p| !p.is_empty()).map(PathBuf::from));
    if let Some(path) = named {
        return path.canonicalize().map_err(|e| {
            Error::Engine(EngineError::OnnxRuntimeLibrary {
                path,
                reason: e.to_string(),
                oldest: ::ort::MINOR_VERSION,
            })
        });
    }
    // Never from the current folder: whoever can put a file there would have it run.
    let environment = env::var_os("VIRTUAL_ENV").map(PathBuf::from).filter(|path| path.is_absolute());
    let roots: Vec<_> = environment.into_iter().collect();
    search(&roots, &["python3", "python"])
}

/// Looks for the Python package in virtual environments, then asks Pythons.
fn search(roots: &[PathBuf], pythons: &[&str]) -> Result<PathBuf> {
    let mut searched = vec!["ORT_DYLIB_PATH (not set)".to_string()];
    for root in roots {
        let packages = site_packages(root).into_iter().map(|site| site.join("onnxruntime"));
        if let Some(path) = packages.into_iter().find_map(|package| in_package(&package)) {
            return Ok(path);
        }
        searched.push(format!("{} (no onnxruntime there)", root.display()));
    }
    for python in pythons {
        match ask_python(python) {
            Ok(package) => match in_package(&package) {
                Some(path) => return Ok(path),
                None => searched.push(format!("{} (no library there)", package.display())),
            },
            Err(reason) => searched.push(format!("{python} ({reason})")),
        }
    }
    Err(Error::Engine(EngineError::NoOnnxRuntime { searched }))
}

/// The package folders of a virtual environment.
fn site_packages(root: &Path) -> Vec<PathBuf> {
    let mut sites = vec![root.join("Lib").join("site-packages")];
    for lib in ["lib", "lib64"] {
        sites.extend(entries(&root.join(lib)).into_iter().map(|python| python.join("site-packages")));
    }
    sites
}

/// The library inside the Python package `onnxruntime`.
fn in_package(package: &Path) -> Option<PathBuf> {
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libonnxruntime.so")
            || (name.starts_with("libonnxruntime.") && name.ends_with(".dylib"))
            || name == "onnxruntime.dll"
    };
    let path = entries(&package.join("capi")).into_iter().find(is_library)?;
    Some(path.canonicalize().unwrap_or(path))
}

/// What is in a folder, in a fixed order; nothing, where it cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
    paths.sort();
    paths
}

/// Where this Python has the package; found without importing it, which would take a second.
fn ask_python(python: &str) -> std::result::Result<PathBuf, String> {
    // Python itself would look in the current folder first.
    const QUESTION: &str = "import sys; sys.path[:] = [p for p in sys.path if p not in ('', '.')]; \
        import importlib.util as u; s = u.find_spec('onnxruntime'); \
        print(s.submodule_search_locations[0] if s else '')";
    let answer = Command::new(python)
        .args(["-c", QUESTION])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .map_err(|_| "not installed".to_string())?;
    match String::from_utf8_lossy(&answer.stdout).trim() {
        "" => Err("has no onnxruntime".to_string()),
        package => Ok(PathBuf::from(package)),
    }
}

/// The version that the library's name or its Python package tells.
pub(super) fn version(library: &Path) -> Option<String> {
    let name = library.file_name()?.to_string_lossy().replace("libonnxruntime", "");
    let digits = name.trim_matches(|c: char| !c.is_ascii_digit());
    if digits.contains('.') {
        return Some(digits.to_string());
    }
    let info = fs::read_to_string(library.with_file_name("build_and_package_info.py")).ok()?;
    let line = info.lines().find(|line| line.starts_with("__version__"))?;
    line.split(['\'', '"']).nth(1).map(str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_version_from_the_name() {
        let version = |name: &str| version(Path::new(name));
        assert_eq!(version("libonnxruntime.so.1.31.1").as_deref(), Some("1.31.1"));
        assert_eq!(version("libonnxruntime.1.24.0.dylib").as_deref(), Some("1.24.0"));
        assert_eq!(version("libonnxruntime.so"), None);
    }

    #[test]
    fn says_where_it_searched() {
        let message = search(&[PathBuf::from("no-venv")], &["no-python"]).unwrap_err().to_string();
        assert_eq!(
            message,
            "ONNX Runtime was not found; searched ORT_DYLIB_PATH (not set), no-venv (no onnxruntime there), \
             no-python (not installed). Install it with `pip install onnxruntime`, or set ORT_DYLIB_PATH to \
             its shared library"
        );
    }

    #[test]
    fn a_named_library_that_is_missing_is_an_error() {
        let message = find(Some(Path::new("nowhere/libonnxruntime.so"))).unwrap_err().to_string();
        assert!(message.contains("nowhere/libonnxruntime.so"), "{message}");
        assert!(message.contains("pip install"), "{message}");
    }
}
