# find_package(tfaot): compiles models while a project is built.
#
#   tfaot_add_model(TARGET net GRAPH model.pb FEED "image=f32[1,224,224,3]")
#   target_link_libraries(program PRIVATE net)
#
# makes the static library `net`, with the folder of net.h among its include folders. Arguments:
#
#   TARGET name      the library, and the prefix of files and symbols unless NAME says another
#   GRAPH path       what `tfaot compile` reads; relative to the current source folder
#   NAME name        the prefix of files and symbols
#   SIGNATURE name...  the signatures of a SavedModel, or `all`; several are functions of one library with one copy of the weights
#   FEED, FETCH, DIM as the flags of `tfaot compile`, each with any number of values
#   CONFIG path      a tf2xla.Config, in the place of FEED and FETCH
#   CPU name...      processors, between which the code picks where they are several; `native` is the machine that builds. By
#                    default x86-64-v3 and x86-64-v4, or for AArch64 cortex-a76, which is ARMv8.2
#   TRIPLE triple    LLVM's name of the target; by default that of the project's compiler or system
#   EMIT kind...     further files: cpp, pool, fortran, metadata, asm, ...; see `tfaot compile --help`
#   CPP_CLASS name   the class of EMIT cpp
#   WEIGHTS, MATH    numbers of fewer bits
#   WEIGHTS_FILE     the weights go to a file of their own, which the program reads or maps and hands over with each call; its path is
#                    the property TFAOT_WEIGHTS_FILE of the target
#   FLAGS flag...    further flags of `tfaot compile`
#
# The model is compiled again when one of its files changes. Files lie in ${CMAKE_CURRENT_BINARY_DIR}/tfaot/NAME.
cmake_minimum_required(VERSION 3.20)

find_program(TFAOT_EXECUTABLE tfaot
  HINTS "${CMAKE_CURRENT_LIST_DIR}/../../../bin" "${CMAKE_CURRENT_LIST_DIR}/../bin"
  DOC "The compiler of models" NO_CMAKE_FIND_ROOT_PATH)
if(NOT TFAOT_EXECUTABLE)
  set(tfaot_FOUND FALSE)
  set(tfaot_NOT_FOUND_MESSAGE "the program tfaot is not on PATH; -DTFAOT_EXECUTABLE=/path/to/tfaot names it")
  return()
endif()

# The triple of what the project builds, or nothing for the machine that builds.
function(_tfaot_triple out)
  set(triple "")
  if(CMAKE_C_COMPILER_TARGET)
    set(triple "${CMAKE_C_COMPILER_TARGET}")
  elseif(CMAKE_CXX_COMPILER_TARGET)
    set(triple "${CMAKE_CXX_COMPILER_TARGET}")
  elseif(CMAKE_CROSSCOMPILING)
    string(TOLOWER "${CMAKE_SYSTEM_PROCESSOR}" processor)
    if(processor MATCHES "^(aarch64|arm64)$")
      set(processor aarch64)
    elseif(processor MATCHES "^(x86_64|amd64)$")
      set(processor x86_64)
    elseif(NOT processor MATCHES "^(riscv64|wasm32)$")
      message(FATAL_ERROR "tfaot_add_model: no triple is known for ${CMAKE_SYSTEM_PROCESSOR}; give TRIPLE")
    endif()
    if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
      set(triple "${processor}-unknown-linux-gnu")
    elseif(CMAKE_SYSTEM_NAME STREQUAL "Darwin")
      set(triple "${processor}-apple-macosx11.0.0")
    elseif(CMAKE_SYSTEM_NAME STREQUAL "iOS")
      set(triple "${processor}-apple-ios15.0")
    elseif(CMAKE_SYSTEM_NAME STREQUAL "Windows")
      set(triple "${processor}-pc-windows-msvc")
      if(MINGW)
        set(triple "${processor}-w64-windows-gnu")
      endif()
    else()
      message(FATAL_ERROR "tfaot_add_model: no triple is known for ${CMAKE_SYSTEM_NAME}; give TRIPLE")
    endif()
  endif()
  set(${out} "${triple}" PARENT_SCOPE)
endfunction()

# The processors that code is for by default.
function(_tfaot_cpus out triple)
  set(processor "${triple}")
  if(NOT processor)
    set(processor "${CMAKE_HOST_SYSTEM_PROCESSOR}")
  endif()
  if(processor MATCHES "^(aarch64|arm64|AARCH64|ARM64)")
    set(${out} cortex-a76 PARENT_SCOPE)
    if(processor MATCHES "windows|apple")
      # programs can't ask what the processor has
      set(${out} generic PARENT_SCOPE)
    endif()
  elseif(processor MATCHES "^riscv64")
    set(${out} rv64gc PARENT_SCOPE)
    if(processor MATCHES "linux")
      set(${out} rv64gc rv64gcv PARENT_SCOPE)
    endif()
  elseif(processor MATCHES "^wasm32")
    set(${out} generic PARENT_SCOPE)
  elseif(processor MATCHES "^thumb")
    set(${out} cortex-m4 PARENT_SCOPE)
  else()
    set(${out} x86-64-v3 x86-64-v4 PARENT_SCOPE)
  endif()
endfunction()

function(tfaot_add_model)
  set(one TARGET GRAPH NAME CONFIG TRIPLE CPP_CLASS WEIGHTS MATH)
  set(several SIGNATURE FEED FETCH DIM CPU EMIT FLAGS)
  cmake_parse_arguments(PARSE_ARGV 0 arg "WEIGHTS_FILE" "${one}" "${several}")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tfaot_add_model: ${arg_UNPARSED_ARGUMENTS} is not understood")
  endif()
  if(NOT arg_TARGET OR NOT arg_GRAPH)
    message(FATAL_ERROR "tfaot_add_model: TARGET and GRAPH are needed")
  endif()
  if(NOT arg_NAME)
    set(arg_NAME "${arg_TARGET}")
  endif()
  get_filename_component(graph "${arg_GRAPH}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/tfaot/${arg_NAME}")

  set(flags --name "${arg_NAME}" --quiet)
  foreach(flag IN ITEMS weights math)
    string(TOUPPER "${flag}" key)
    if(arg_${key})
      list(APPEND flags "--${flag}" "${arg_${key}}")
    endif()
  endforeach()
  if(arg_CPP_CLASS)
    list(APPEND flags --cpp-class "${arg_CPP_CLASS}")
  endif()
  foreach(flag IN ITEMS signature feed fetch dim)
    string(TOUPPER "${flag}" key)
    foreach(value IN LISTS arg_${key})
      list(APPEND flags "--${flag}" "${value}")
    endforeach()
  endforeach()
  if(arg_WEIGHTS_FILE)
    list(APPEND flags --weights-file)
  endif()
  if(arg_CONFIG)
    get_filename_component(config "${arg_CONFIG}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    list(APPEND flags --config "${config}")
  endif()
  if(NOT arg_TRIPLE)
    _tfaot_triple(arg_TRIPLE)
  endif()
  if(arg_TRIPLE)
    list(APPEND flags --target "${arg_TRIPLE}")
  endif()
  if(NOT arg_CPU)
    _tfaot_cpus(arg_CPU "${arg_TRIPLE}")
  endif()
  list(JOIN arg_CPU "," cpus)
  list(APPEND flags --cpu "${cpus}" ${arg_FLAGS})

  # What else is asked for, with the names of its files.
  set(kinds obj header depfile)
  set(files "${folder}/${arg_NAME}.o" "${folder}/${arg_NAME}.h")
  if(arg_WEIGHTS_FILE)
    list(APPEND files "${folder}/${arg_NAME}.weights")
  endif()
  set(ending_cpp .hpp)
  set(ending_fortran .f90)
  set(ending_metadata .json)
  set(ending_hlo .hlo)
  set(ending_llvm-ir .ll)
  set(ending_asm .s)
  set(ending_kernels .kernels)
  foreach(kind IN LISTS arg_EMIT)
    if(kind STREQUAL "pool")
      list(APPEND files "${folder}/tfaot_pool.h")
    elseif(DEFINED ending_${kind})
      list(APPEND files "${folder}/${arg_NAME}${ending_${kind}}")
    else()
      message(FATAL_ERROR "tfaot_add_model: EMIT ${kind} is not known here")
    endif()
    list(APPEND kinds "${kind}")
  endforeach()
  list(JOIN kinds "," kinds)

  # Visual Studio and Xcode take no depfile; there, only the graph itself is watched.
  set(watched DEPENDS "${TFAOT_EXECUTABLE}")
  if(NOT IS_DIRECTORY "${graph}")
    list(APPEND watched "${graph}")
  endif()
  if(CMAKE_GENERATOR MATCHES "Makefiles|Ninja")
    list(APPEND watched DEPFILE "${folder}/${arg_NAME}.d")
  endif()
  add_custom_command(
    OUTPUT ${files}
    COMMAND "${TFAOT_EXECUTABLE}" compile "${graph}" -o "${folder}" --emit "${kinds}" ${flags}
    ${watched}
    COMMENT "Compiling the model ${arg_NAME}"
    VERBATIM)
  set_source_files_properties("${folder}/${arg_NAME}.o" PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  set_source_files_properties(${files} PROPERTIES HEADER_FILE_ONLY FALSE GENERATED TRUE)

  set(sources ${files})
  list(FILTER sources INCLUDE REGEX "\\.(o|h|hpp)$")
  add_library(${arg_TARGET} STATIC ${sources})
  set_target_properties(${arg_TARGET} PROPERTIES LINKER_LANGUAGE C)
  if(arg_WEIGHTS_FILE)
    set_target_properties(${arg_TARGET} PROPERTIES TFAOT_WEIGHTS_FILE "${folder}/${arg_NAME}.weights")
  endif()
  target_include_directories(${arg_TARGET} INTERFACE "$<BUILD_INTERFACE:${folder}>")
  if("pool" IN_LIST arg_EMIT)
    find_package(Threads REQUIRED)
    target_link_libraries(${arg_TARGET} INTERFACE Threads::Threads)
  endif()
  add_library(tfaot::${arg_TARGET} ALIAS ${arg_TARGET})
endfunction()
