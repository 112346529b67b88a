# SPDX-License-Identifier: Apache-2.0
# cmake --install BUILD --component cann --prefix P: a prefix that programs take as ASCEND_HOME_PATH.
# A component of its own, left out of a plain cmake --install: its file names (acl/acl.h,
# libascendcl.so, set_env.sh) would get in the way of a real toolkit in /usr/local.
option(MOEPERM_INSTALL_CANN "Offer the cann component to cmake --install" ${PROJECT_IS_TOP_LEVEL})

# All code and all state are in libmoeperm_cann.so. The operator libraries depend on it and are
# files of their own, since some frameworks look for regular files libopapi_*.so and take what they
# find there by dlsym.
set(MOEPERM_OPAPI_TARGETS)
foreach(part math nn transformer)
  add_library(opapi_${part} SHARED ${CMAKE_CURRENT_LIST_DIR}/opapi.c)
  target_link_libraries(opapi_${part} PRIVATE moeperm-flags moeperm_cann)
  target_link_options(opapi_${part} PRIVATE -Wl,--no-as-needed)
  set_target_properties(opapi_${part} PROPERTIES INSTALL_RPATH "$ORIGIN"
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/cann)
  list(APPEND MOEPERM_OPAPI_TARGETS opapi_${part})
endforeach()
# What the component needs built.
add_custom_target(moeperm-cann-prefix DEPENDS moeperm_cann ${MOEPERM_OPAPI_TARGETS})

if(NOT MOEPERM_INSTALL_CANN)
  return()
endif()
set(component COMPONENT cann EXCLUDE_FROM_ALL)

install(TARGETS moeperm_cann ${MOEPERM_OPAPI_TARGETS} LIBRARY DESTINATION lib64 ${component})
install(DIRECTORY ${CMAKE_CURRENT_LIST_DIR}/include/ DESTINATION include ${component}
  FILES_MATCHING PATTERN "*.h")
install(FILES ${CMAKE_CURRENT_LIST_DIR}/prefix/set_env.sh DESTINATION . ${component})
install(FILES ${CMAKE_CURRENT_LIST_DIR}/prefix/setenv.bash DESTINATION bin ${component})
install(PROGRAMS ${CMAKE_CURRENT_LIST_DIR}/prefix/bisheng DESTINATION bin ${component})
install(FILES ${CMAKE_CURRENT_LIST_DIR}/prefix/config.ini DESTINATION opp/vendors ${component})

# The other names: "link target", the target as seen from the link.
set(arch ${CMAKE_SYSTEM_PROCESSOR})
set(links)
foreach(name acl_rt ascendcl c_sec hccl hccl_fwk nnopbase opapi)
  list(APPEND links "lib64/lib${name}.so libmoeperm_cann.so.${PROJECT_VERSION_MAJOR}")
endforeach()
list(APPEND links
  "${arch}-linux/include ../include"
  "${arch}-linux/lib64 ../lib64"
  "${arch}-linux/devlib ../lib64"
  "opp/include/aclnnop ../../include/aclnnop"
  "opp/lib64 ../lib64"
  "opp/vendors/custom_transformer/op_api/include ../../../../include/aclnnop"
  "opp/vendors/custom_transformer/op_api/lib/libcust_opapi.so \
../../../../../lib64/libmoeperm_cann.so.${PROJECT_VERSION_MAJOR}")
if(arch STREQUAL "aarch64")
  list(APPEND links "arm64-linux aarch64-linux")
endif()
set(script "set(root \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")\n")
foreach(link IN LISTS links)
  separate_arguments(link UNIX_COMMAND "${link}")
  list(GET link 0 name)
  list(GET link 1 target)
  get_filename_component(folder ${name} DIRECTORY)
  string(APPEND script
    "file(MAKE_DIRECTORY \"\${root}/${folder}\")\n"
    "file(CREATE_LINK ${target} \"\${root}/${name}\" SYMBOLIC)\n")
endforeach()
install(CODE "${script}" ${component})
