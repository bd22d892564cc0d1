# The C++ libraries for other programs: headers, one archive each, and a CMake package.
#
#   find_package(stanchion REQUIRED)
#   target_link_libraries(program PRIVATE stanchion::client)   # or stanchion::worker
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
find_program(STANCHION_LD ld.bfd REQUIRED)

# One archive with everything that a layer needs of the others. Symbols that are not the layer's own
# are made local, so that a program may use its own fmt and Boost in any version. Symbols
# that g++ made unique, such as static variables of templates, are made weak before: objcopy would
# not make them local, and two archives with them could not be linked together.
#
#   stanchion_archive(<layer> <layers it is made of>...)
#
# What an archive uses of another archive's layer is not part of it: the CMake package links both.
function(stanchion_archive layer)
  set(archive ${CMAKE_BINARY_DIR}/libstanchion-${layer}.a)
  set(object ${CMAKE_BINARY_DIR}/stanchion-${layer}.o)
  list(TRANSFORM ARGN PREPEND "$<TARGET_FILE:stanchion_" OUTPUT_VARIABLE parts)
  list(TRANSFORM parts APPEND ">")
  list(TRANSFORM ARGN PREPEND stanchion_ OUTPUT_VARIABLE targets)
  string(LENGTH ${layer} length)
  set(own "9stanchion${length}${layer}")
  add_custom_command(OUTPUT ${archive} VERBATIM COMMAND_EXPAND_LISTS
    DEPENDS stanchion_${layer} ${targets} $<TARGET_OBJECTS:stanchion_${layer}> ${parts}
    COMMAND ${STANCHION_LD} -r --force-group-allocation -o ${object}
            $<TARGET_OBJECTS:stanchion_${layer}> --start-group ${parts} --end-group
    COMMAND sh -c "${CMAKE_NM} --defined-only ${object} | sed -n 's/.* u //p' > ${object}.unique"
    COMMAND ${CMAKE_OBJCOPY} --weaken-symbols=${object}.unique ${object}
    COMMAND ${CMAKE_OBJCOPY} --strip-debug --wildcard --keep-global-symbol=_ZN${own}*
            --keep-global-symbol=_ZNK${own}* ${object}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
    COMMAND ${CMAKE_AR} rcsD ${archive} ${object}
    COMMENT "Putting together libstanchion-${layer}.a")
  add_custom_target(stanchion_${layer}_archive ALL DEPENDS ${archive})
  install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
endfunction()

# Headers of a layer that others include, as <stanchion/LAYER/NAME>.
function(stanchion_public_headers layer)
  foreach(name ${ARGN})
    set(header ${CMAKE_SOURCE_DIR}/src/${layer}/${name})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
    file(READ ${header} text)
    string(REGEX REPLACE "#include \"(client|worker)/" "#include \"stanchion/\\1/" text "${text}")
    set(public ${CMAKE_BINARY_DIR}/include/stanchion/${layer}/${name})
    file(CONFIGURE OUTPUT ${public} CONTENT "${text}" @ONLY)
    install(FILES ${public} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stanchion/${layer}
            COMPONENT dev)
  endforeach()
endfunction()

stanchion_archive(client wire net model os base)
stanchion_public_headers(client batcher.h client.h credentials.h options.h outcome.h types.h)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/include/stanchion/client.h @ONLY CONTENT
"// A client of Amazon SQS, and of every server that speaks its protocol.
#pragma once

#include \"stanchion/client/batcher.h\"
#include \"stanchion/client/client.h\"
")
install(FILES ${CMAKE_BINARY_DIR}/include/stanchion/client.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stanchion COMPONENT dev)

stanchion_archive(worker os base)
stanchion_public_headers(worker distributor.h metrics.h options.h publication.h scaling.h task.h visibility_monitor.h worker.h)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/include/stanchion/worker.h @ONLY CONTENT
"// Consumes queues of Amazon SQS, and of every server that speaks its protocol.
#pragma once

#include \"stanchion/worker/distributor.h\"
#include \"stanchion/worker/worker.h\"
")
install(FILES ${CMAKE_BINARY_DIR}/include/stanchion/worker.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stanchion COMPONENT dev)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/stanchion)
configure_package_config_file(packaging/stanchion-config.cmake.in
  ${CMAKE_BINARY_DIR}/stanchion-config.cmake INSTALL_DESTINATION ${package}
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/stanchion-config-version.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/stanchion-config.cmake
              ${CMAKE_BINARY_DIR}/stanchion-config-version.cmake
        DESTINATION ${package} COMPONENT dev)
install(FILES docs/client.md docs/worker.md packaging/debian/copyright
        DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/libstanchion-dev COMPONENT dev)
install(DIRECTORY examples/cpp DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/libstanchion-dev/examples
        COMPONENT dev)
