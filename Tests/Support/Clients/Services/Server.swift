// SPDX-License-Identifier: Apache-2.0

import Hummingbird
import NotifyBus

/// Posts over HTTP, and a request that is answered when a name is posted.
func makeRouter(_ center: NotifyCenter) -> Router<BasicRequestContext> {
    let router = Router()
    router.post("names/{name}") { _, context in
        try center.post(NotifyName(context.parameters.require("name")))
        return HTTPResponse.Status.accepted
    }
    router.get("names/{name}/next") { _, context in
        let name = try NotifyName(context.parameters.require("name"))
        return try await center.next(of: name, timeout: .seconds(60)).rawValue
    }
    return router
}
