import type { components } from "./schema.js";

type ErrorBody = components["schemas"]["Error"];

/** What every error of this package is. */
export class DocentError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The server could not be reached, or the connection broke and could not be taken up again. */
export class ConnectionError extends DocentError {}

/** The answer's stream said that there is no answer, for a reason that a reader may see. */
export class AnswerError extends DocentError {}

/** What was waited for did not end within the time given. The work goes on at the server. */
export class WaitTimeoutError extends DocentError {}

/** An answer of the API that is no success. */
export class ApiError extends DocentError {
  /** Stable and for programs; empty where something other than Docent answered, such as a proxy. */
  readonly code: ErrorBody["code"] | "";
  /** Each field of the request that is wrong. */
  readonly details: readonly { field: string; message: string }[];
  /** Names the request in the server's log. */
  readonly requestId: string;
  /** The quota that is used up. */
  readonly limit: ErrorBody["limit"];
  /** Where a proof of work can be had that the project asks for with each question. `ask` does that by itself. */
  readonly challenge: string | undefined;
  /** Seconds after which the same request may succeed, where the server says so. */
  readonly retryAfter: number | undefined;

  constructor(readonly status: number, body: Partial<ErrorBody>, headers: Headers) {
    super(body.message || `the server answered ${status}`);
    this.code = body.code ?? "";
    this.details = body.details ?? [];
    this.requestId = body.requestId ?? headers.get("X-Request-Id") ?? "";
    this.limit = body.limit;
    this.challenge = body.challenge;
    this.retryAfter = seconds(headers.get("Retry-After"));
  }
}

/** 400, 413, 415: the request is wrong; `details` says where. */
export class InvalidRequestError extends ApiError {}
/** 401: no key, or one that is malformed, unknown, revoked or expired; with the code `reader_token`, a reader token that is not valid. */
export class UnauthorizedError extends ApiError {}
/** 403: a key of the wrong kind, without the scope, used from a place that it does not allow, or that names groups and may not. */
export class ForbiddenError extends ApiError {}
/** 404: there is no such thing, or it belongs to somebody else. */
export class NotFoundError extends ApiError {}
/** 409: not in this state; or the idempotency key was used with another body. */
export class ConflictError extends ApiError {}
/** 429: a quota is used up. `limit` names it, `retryAfter` says when there is more. */
export class RateLimitError extends ApiError {}
/** 502, 503, 504: not now. It was tried again before this was thrown. */
export class UnavailableError extends ApiError {}

const classes: Record<number, typeof ApiError> = {
  400: InvalidRequestError, 413: InvalidRequestError, 415: InvalidRequestError, 401: UnauthorizedError, 403: ForbiddenError,
  404: NotFoundError, 409: ConflictError, 429: RateLimitError, 502: UnavailableError, 503: UnavailableError, 504: UnavailableError,
};

/** apiError is the exception for an answer that is no success. It reads the answer's body. */
export async function apiError(response: Response): Promise<ApiError> {
  const body: unknown = await response.json().catch(() => null);
  return new (classes[response.status] ?? ApiError)(response.status, typeof body === "object" && body !== null ? body : {}, response.headers);
}

export function seconds(text: string | null): number | undefined {
  return text !== null && /^[0-9]+$/.test(text) ? Number(text) : undefined;
}
