# The console's files, compressed and embedded in the program: console_assets() lists them.
set(console_folder ${CMAKE_SOURCE_DIR}/console)
set(console_out ${CMAKE_BINARY_DIR}/generated/console)
file(GLOB console_files CONFIGURE_DEPENDS ${console_folder}/*.html ${console_folder}/*.css
     ${console_folder}/*.js ${console_folder}/*.svg)
# The library that draws charts is Debian's package libjs-chart.js.
find_file(CHART_JS chart.min.js PATHS /usr/share/javascript/chart.js NO_DEFAULT_PATH)
if(NOT CHART_JS)
  message(FATAL_ERROR "chart.min.js was not found: run scripts/setup, which installs libjs-chart.js")
endif()
list(APPEND console_files ${CHART_JS})
file(MAKE_DIRECTORY ${console_out})
set(console_packed)
set(console_bytes)
set(console_names)
set(console_rows)
foreach(file ${console_files})
  get_filename_component(name ${file} NAME)
  list(LENGTH console_packed number)
  set(packed ${console_out}/${name}.gz)
  # Without a name and a time, so that the same files give the same program.
  add_custom_command(OUTPUT ${packed} DEPENDS ${file} VERBATIM
    COMMAND sh -c "gzip -9 -n -c \"$1\" > \"$2\"" sh ${file} ${packed})
  list(APPEND console_packed ${packed})
  string(REGEX REPLACE ".*\\.html$" "text/html; charset=utf-8" type ${name})
  string(REGEX REPLACE ".*\\.css$" "text/css; charset=utf-8" type "${type}")
  string(REGEX REPLACE ".*\\.svg$" "image/svg+xml" type "${type}")
  string(REGEX REPLACE ".*\\.js$" "text/javascript; charset=utf-8" type "${type}")
  string(APPEND console_bytes "asm(\".section .rodata\\n\"
    \".global stanchion_console_${number}\\nstanchion_console_${number}:\\n\"
    \".incbin \\\"${packed}\\\"\\n\"
    \".global stanchion_console_${number}_end\\nstanchion_console_${number}_end:\\n.previous\\n\");\n")
  string(APPEND console_names
    "extern const char stanchion_console_${number}[], stanchion_console_${number}_end[];\n")
  string(APPEND console_rows "      {\"/console/${name}\", \"${type}\",
       {stanchion_console_${number}, static_cast<std::size_t>(stanchion_console_${number}_end -
                                                              stanchion_console_${number})}},\n")
endforeach()
file(CONFIGURE OUTPUT ${console_out}/console_assets.cc @ONLY CONTENT [[
// Made by cmake/console.cmake.
#include "console/assets.h"

#include <cstddef>

@console_bytes@
extern "C" {
@console_names@}

namespace stanchion::console {

std::span<const ConsoleAsset> console_assets() {
  static const ConsoleAsset assets[] = {
@console_rows@  };
  return assets;
}

}  // namespace stanchion::console
]])
set_source_files_properties(${console_out}/console_assets.cc PROPERTIES
  OBJECT_DEPENDS "${console_packed}" SKIP_PRECOMPILE_HEADERS ON)
target_sources(stanchion_console PRIVATE ${console_out}/console_assets.cc)
