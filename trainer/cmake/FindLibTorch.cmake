# Defines LibTorch::LibTorch, LibTorch_VERSION, LibTorch_CUDA and LibTorch_LIBRARY_DIRS.
#
# In this order:
#   1. LIBTORCH_DIR: an unpacked torch wheel (site-packages/torch of a Python, or what
#      tools/libtorch.sh makes)
#   2. a Torch CMake package of CMAKE_PREFIX_PATH or Torch_DIR, 2.6 or newer
#   3. where tools/libtorch.sh puts it
# The wheel's own CMake package insists on a CUDA toolkit even for a program that uses none, hence
# an imported target of our own. With libtorch_cuda.so, the CUDA headers and nccl.h beside it,
# the target carries CUDA and NCCL too.
if(TARGET LibTorch::LibTorch)
  return()
endif()

if(DEFINED ENV{PTO_CACHE})
  set(_libtorch_cache "$ENV{PTO_CACHE}")
else()
  set(_libtorch_cache "$ENV{HOME}/.cache/pytorch-operator")
endif()
set(LIBTORCH_DIR "" CACHE PATH "An unpacked torch wheel: holds include/ and lib/")
option(LIBTORCH_CUDA "Use CUDA and NCCL where the LibTorch found has them" ON)
set(LibTorch_CUDA OFF)

set(_libtorch_dir "${LIBTORCH_DIR}")
if(NOT _libtorch_dir)
  find_package(Torch 2.6 CONFIG QUIET)
  if(NOT Torch_FOUND)
    file(GLOB _libtorch_stamps "${_libtorch_cache}/libtorch/*/complete")
    if(_libtorch_stamps)
      list(SORT _libtorch_stamps COMPARE NATURAL ORDER DESCENDING)
      list(GET _libtorch_stamps 0 _libtorch_stamp)
      get_filename_component(_libtorch_dir "${_libtorch_stamp}" DIRECTORY)
    endif()
  endif()
endif()

if(_libtorch_dir)
  # Newer versions keep it in headeronly, older ones beside torch.h.
  find_file(_libtorch_version_header version.h NO_CACHE NO_DEFAULT_PATH
    PATHS "${_libtorch_dir}/include/torch/headeronly"
          "${_libtorch_dir}/include/torch/csrc/api/include/torch")
  if(NOT _libtorch_version_header OR NOT EXISTS "${_libtorch_dir}/lib/libtorch_cpu.so")
    message(FATAL_ERROR "LIBTORCH_DIR=${_libtorch_dir} holds no LibTorch: include/torch and "
      "lib/libtorch_cpu.so are expected there.")
  endif()
  file(STRINGS "${_libtorch_version_header}" _libtorch_lines
    REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^0-9;]" "" _libtorch_numbers "${_libtorch_lines}")
  list(JOIN _libtorch_numbers "." LibTorch_VERSION)
  if(LibTorch_VERSION VERSION_LESS 2.6)
    message(FATAL_ERROR "LibTorch ${LibTorch_VERSION} in ${_libtorch_dir} is too old: 2.6 or newer is needed.")
  endif()
  # ProcessGroupGloo.hpp includes Gloo's headers, which the wheel leaves out. Only headers are
  # taken from the system: Gloo itself is inside libtorch_cpu.so.
  find_path(GLOO_INCLUDE_DIR gloo/common/common.h)
  if(NOT GLOO_INCLUDE_DIR)
    message(FATAL_ERROR "Gloo's headers are missing: install libgloo-dev, or give -DGLOO_INCLUDE_DIR=...")
  endif()
  set(LibTorch_LIBRARY_DIRS "${_libtorch_dir}/lib")
  file(GLOB _libtorch_nvidia "${_libtorch_dir}/../nvidia/*/lib")
  foreach(_dir ${_libtorch_nvidia})
    get_filename_component(_dir "${_dir}" ABSOLUTE)
    list(APPEND LibTorch_LIBRARY_DIRS "${_dir}")
  endforeach()

  add_library(LibTorch::LibTorch INTERFACE IMPORTED)
  set(_libtorch_rpath_links "")
  foreach(_dir ${LibTorch_LIBRARY_DIRS})
    list(APPEND _libtorch_rpath_links "LINKER:-rpath-link,${_dir}")
  endforeach()
  set_target_properties(LibTorch::LibTorch PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES
      "${_libtorch_dir}/include;${_libtorch_dir}/include/torch/csrc/api/include;${GLOO_INCLUDE_DIR}"
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES
      "${_libtorch_dir}/include;${_libtorch_dir}/include/torch/csrc/api/include;${GLOO_INCLUDE_DIR}"
    INTERFACE_COMPILE_DEFINITIONS "USE_DISTRIBUTED;USE_C10D_GLOO"
    INTERFACE_LINK_LIBRARIES "${_libtorch_dir}/lib/libtorch_cpu.so;${_libtorch_dir}/lib/libc10.so"
    # libtorch_cpu.so refers to CUDA symbols that only a GPU program resolves.
    INTERFACE_LINK_OPTIONS "LINKER:--allow-shlib-undefined;${_libtorch_rpath_links}")

  if(LIBTORCH_CUDA AND EXISTS "${_libtorch_dir}/lib/libtorch_cuda.so")
    find_path(LIBTORCH_CUDA_INCLUDE_DIR cuda_runtime_api.h
      HINTS "${_libtorch_dir}/../nvidia/cu13/include" /usr/local/cuda/include)
    find_path(LIBTORCH_NCCL_INCLUDE_DIR nccl.h HINTS "${_libtorch_dir}/../nvidia/nccl/include")
    find_library(LIBTORCH_NCCL NAMES libnccl.so.2 nccl
      HINTS "${_libtorch_dir}/../nvidia/nccl/lib")
    find_library(LIBTORCH_CUDART NAMES libcudart.so.13 libcudart.so.12 cudart
      HINTS "${_libtorch_dir}/../nvidia/cu13/lib" /usr/local/cuda/lib64)
    if(LIBTORCH_CUDA_INCLUDE_DIR AND LIBTORCH_NCCL_INCLUDE_DIR AND LIBTORCH_NCCL AND LIBTORCH_CUDART)
      set(LibTorch_CUDA ON)
      set_property(TARGET LibTorch::LibTorch APPEND PROPERTY INTERFACE_INCLUDE_DIRECTORIES
        "${LIBTORCH_CUDA_INCLUDE_DIR};${LIBTORCH_NCCL_INCLUDE_DIR}")
      set_property(TARGET LibTorch::LibTorch APPEND PROPERTY INTERFACE_SYSTEM_INCLUDE_DIRECTORIES
        "${LIBTORCH_CUDA_INCLUDE_DIR};${LIBTORCH_NCCL_INCLUDE_DIR}")
      set_property(TARGET LibTorch::LibTorch APPEND PROPERTY INTERFACE_COMPILE_DEFINITIONS
        "USE_C10D_NCCL;DDP_CUDA")
      # Nothing calls libtorch_cuda.so by name: without --no-as-needed the linker drops it, and
      # with it the registration of every CUDA operator.
      set_property(TARGET LibTorch::LibTorch APPEND PROPERTY INTERFACE_LINK_LIBRARIES
        "-Wl,--no-as-needed" "${_libtorch_dir}/lib/libtorch_cuda.so"
        "${_libtorch_dir}/lib/libc10_cuda.so" "-Wl,--as-needed"
        "${LIBTORCH_NCCL}" "${LIBTORCH_CUDART}")
    else()
      message(STATUS "LibTorch has CUDA, but its headers, nccl.h or libraries are missing: CPU only")
    endif()
  endif()
elseif(Torch_FOUND)
  set(LibTorch_VERSION "${Torch_VERSION}")
  add_library(LibTorch::LibTorch INTERFACE IMPORTED)
  set_target_properties(LibTorch::LibTorch PROPERTIES INTERFACE_LINK_LIBRARIES torch)
  if(TARGET torch_cuda AND LIBTORCH_CUDA)
    set(LibTorch_CUDA ON)
    set_property(TARGET LibTorch::LibTorch APPEND PROPERTY INTERFACE_COMPILE_DEFINITIONS
      "USE_C10D_NCCL;DDP_CUDA")
  endif()
  get_filename_component(LibTorch_LIBRARY_DIRS "${Torch_DIR}/../../../lib" ABSOLUTE)
  if(NOT TORCH_LIBRARIES MATCHES "gloo")
    find_path(GLOO_INCLUDE_DIR gloo/common/common.h)
    if(GLOO_INCLUDE_DIR)
      set_property(TARGET LibTorch::LibTorch APPEND PROPERTY INTERFACE_INCLUDE_DIRECTORIES
        "${GLOO_INCLUDE_DIR}")
    endif()
  endif()
endif()

if(TARGET LibTorch::LibTorch)
  set(LibTorch_FOUND TRUE)
  if(NOT LibTorch_FIND_QUIETLY)
    message(STATUS "LibTorch ${LibTorch_VERSION}, CUDA ${LibTorch_CUDA}: ${LibTorch_LIBRARY_DIRS}")
  endif()
else()
  set(LibTorch_FOUND FALSE)
  if(LibTorch_FIND_REQUIRED)
    message(FATAL_ERROR "LibTorch was not found. Run tools/libtorch.sh (it fetches LibTorch into "
      "${_libtorch_cache}/libtorch), or give -DLIBTORCH_DIR=<unpacked torch wheel> or a "
      "-DCMAKE_PREFIX_PATH that holds a Torch package, or build without the trainer: "
      "-DBUILD_TRAINER=OFF.")
  endif()
endif()
