# The layers of Stanchion: one library per folder of src/, with its subfolders. This file alone
# lists what each may include. tests/include_rules_test.py reads it and fails on an include that
# goes sideways or up, and on a permission that nobody uses.
#
#   stanchion_layer(<folder> <layers it may include>...)
#   stanchion_apart(<folder> <folder>)   of one layer, of which neither may include the other
#   stanchion_below(<folder> <unit>)     of one layer: what is in the folder may not use the unit (a
#                                        header with its source file), not even through others

stanchion_layer(base)
stanchion_layer(model base)
stanchion_layer(engine base model)
stanchion_layer(wire base model)
stanchion_layer(policy base model)
stanchion_layer(os base)
stanchion_layer(log base)
stanchion_layer(journal base model os)
stanchion_layer(kafka base model os journal)
stanchion_layer(store base model os)
stanchion_layer(history base model os store)
stanchion_layer(cloudwatch base model history)
stanchion_layer(broker base model engine os journal store)
stanchion_layer(fleet base model engine os journal store broker)
stanchion_layer(net base os)
stanchion_layer(link base model os fleet net)
stanchion_layer(fleet_admin base model engine os journal store broker fleet kafka)
stanchion_layer(fleet_node base model os journal store broker fleet net kafka link fleet_admin)
stanchion_layer(service base log model policy os wire net broker)
stanchion_layer(monitoring base model os wire net history cloudwatch broker service)
stanchion_layer(console base model os wire net broker service monitoring)
stanchion_layer(settings base log model engine os net service)
stanchion_layer(backup base model os journal store broker net)
stanchion_layer(load base os wire net)
stanchion_layer(client base model os wire net)
stanchion_layer(worker base os client)
stanchion_layer(server base log model os journal store broker link fleet_node net service monitoring console settings backup)
stanchion_layer(runner base log os net settings client worker)
stanchion_layer(cli base log model engine os journal store broker fleet kafka fleet_admin wire net settings backup load client worker server runner)

stanchion_apart(engine/rules engine/store)
stanchion_below(engine/store engine/stock)
stanchion_below(engine/rules engine/engine)
