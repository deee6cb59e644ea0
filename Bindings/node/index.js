// SPDX-License-Identifier: Apache-2.0
export { Center, Observation } from './lib/center.js'
export { NotifyBusError } from './lib/errors.js'
