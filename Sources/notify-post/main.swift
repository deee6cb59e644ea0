import NotifyBus
let center = NotifyCenter()
do {
for name in CommandLine.arguments.dropFirst() { try center.post(name: name) }
try center.synchronize()
} catch { print(error) }
