# Writes the commit being built, for `stanchion version`; the file is touched only if the commit
# changed.
#
#   cmake -D SOURCE=<clone> -D OUT=<header> -P commit.cmake
cmake_minimum_required(VERSION 3.25)
set(COMMIT "")
find_program(GIT git)
if(GIT)
  execute_process(COMMAND ${GIT} --no-optional-locks -C ${SOURCE} describe --always --dirty --abbrev=12
                  OUTPUT_VARIABLE COMMIT ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "#pragma once\n#define STANCHION_COMMIT \"@COMMIT@\"\n" @ONLY)
