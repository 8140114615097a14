export { Answer, type AnswerPart, type Suggestion, type WholeAnswer } from "./answer.js";
export * from "./client.js";
export {
  AnswerError, ApiError, ConflictError, ConnectionError, DocentError, ForbiddenError, InvalidRequestError, NotFoundError, RateLimitError, UnauthorizedError,
  UnavailableError, WaitTimeoutError,
} from "./errors.js";
export type { components, operations, paths } from "./schema.js";
export type { Card, Source } from "./stream.js";
